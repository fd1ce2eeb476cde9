import type { AdmitBy, Dialect, SelfAdmittingHttpServing, ServeContext } from "../../../../core/dialects/contract.ts";
import { describeDialect } from "../../../../core/dialects/contract-suite.ts";
import { outcomeOfStream } from "../../../../core/dialects/suite/values.ts";
import { SILENT_LOG } from "../../../../core/model/ports.ts";
import { NO_CLOCK } from "../../../../core/model/testing/no-clock.ts";
import type { RequestHead } from "../../../../core/wire/exchange.ts";
import { httpCalling, xiaoyiHttp } from "../../codec/call/call-http.ts";
import { isRequestError } from "../../codec/phone-texts.ts";
import { DECODED_ERROR_CODES } from "../../codec/testing/decoded-error-codes.ts";
import { createHttpServing } from "./bind-http.ts";
import { API_KEY, entryOf, NOW } from "./fixtures/serving.ts";

const clock = { ...NO_CLOCK, now: () => NOW };
const [http] = createHttpServing({ clock, log: SILENT_LOG, entriesFor: () => [entryOf()] }) as readonly [
  SelfAdmittingHttpServing,
  SelfAdmittingHttpServing,
];

const dialect: Dialect = {
  ...xiaoyiHttp,
  serving: {
    http: [
      {
        ...http,
        handle(exchange: RequestHead, context: ServeContext, admit: AdmitBy) {
          const headers = { ...exchange.headers, authorization: `Bearer ${API_KEY}` };
          return http.handle({ ...exchange, headers }, context, admit);
        },
      },
    ],
  },
  calling: [
    {
      ...httpCalling,
      encode: (operation, target) => httpCalling.encode(operation, { ...target, url: `${target.url}/agent/message` }),
    },
  ],
};

describeDialect(dialect, {
  exact: false,
  answersByTask: true,
  streamsOnly: true,
  ofStream: outcomeOfStream,
  hasGeneralMessage: isRequestError,
  errors: DECODED_ERROR_CODES,
});
