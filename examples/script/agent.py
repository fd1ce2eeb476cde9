"""Counts the words of a message. stdin is one JSON object, because the configuration says format: json."""

import json
import sys


def say(**event):
    """One line of JSON with a single known key is an event; any other line is text of the artifact "output"."""
    print(json.dumps(event), flush=True)


request = json.load(sys.stdin)
text = " ".join(part["text"] for part in request["message"]["parts"] if "text" in part)

if not text.strip():
    say(inputRequired="Which text shall I count?")
    sys.exit(0)

say(status="Counting")
words = text.split()
say(artifact={"name": "count", "data": {"words": len(words), "characters": len(text)}})
print(f"{len(words)} words")
