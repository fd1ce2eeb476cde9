import { type Fields, fieldsIn, isFields, listIn, textIn } from "../json.ts";

const MOST_CARDS = 20;
const LONGEST_CHIP = 64;

/** Why the phone cannot show a data part: what it asks of commands, cards, chips and references. */
export function whyDataFails(data: Fields): string | undefined {
  return commandFault(data.commands) ?? cardFault(data.cardsInfo) ?? chipFault(data.chipsInfo) ?? referenceFault(data);
}

function commandFault(commands: unknown): string | undefined {
  if (commands === undefined) return undefined;
  if (!Array.isArray(commands)) return "commands is no list.";
  const whole = commands.every((command) => {
    const { header, payload } = fieldsIn(command);
    const { name, namespace } = fieldsIn(header);
    return textIn(namespace) !== undefined && textIn(name) !== undefined && isFields(payload);
  });
  return whole ? undefined : "A command needs header.namespace, header.name and payload.";
}

/** A list by the book; a single object was printed early on and is taken too. */
function cardFault(cardsInfo: unknown): string | undefined {
  if (cardsInfo === undefined) return undefined;
  const cards = Array.isArray(cardsInfo) ? cardsInfo : [cardsInfo];
  if (cards.length > MOST_CARDS) return `There are more than ${MOST_CARDS} cards.`;
  const whole = cards.every((card) => {
    const { cardData, cardName } = fieldsIn(card);
    return textIn(cardName) !== undefined && isFields(cardData);
  });
  return whole ? undefined : "A card needs cardName and cardData.";
}

function chipFault(chipsInfo: unknown): string | undefined {
  if (chipsInfo === undefined) return undefined;
  const { chipsList } = fieldsIn(fieldsIn(chipsInfo).displayChips);
  if (!Array.isArray(chipsList)) return "chipsInfo.displayChips.chipsList is no list.";
  const contents = chipsList.map((chip) => textIn(fieldsIn(chip).content));
  if (contents.some((content) => content === undefined)) return "A chip needs content.";
  if (contents.some((content) => [...(content ?? "")].length > LONGEST_CHIP)) {
    return `The content of a chip has more than ${LONGEST_CHIP} characters.`;
  }
  return undefined;
}

function referenceFault({ reference }: Fields): string | undefined {
  if (reference === undefined) return undefined;
  const { items } = fieldsIn(reference);
  if (!Array.isArray(items)) return "reference.items is no list.";
  const whole = listIn(items).every((item) => textIn(fieldsIn(fieldsIn(item).card).type) !== undefined);
  return whole ? undefined : "A reference needs card.type.";
}
