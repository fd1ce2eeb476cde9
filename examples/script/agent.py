"""Counts the words of a message. stdin is one JSON object, because the configuration sets format: json."""

import json
import sys


def emit(**event):
    """One line of JSON with a single known key is an event; any other line is text of the artifact "output"."""
    print(json.dumps(event), flush=True)


request = json.load(sys.stdin)
text = " ".join(part["text"] for part in request["message"]["parts"] if "text" in part)

if not text.strip():
    emit(inputRequired="Which text shall I count?")
    sys.exit(0)

emit(status="Counting")
words = text.split()
emit(artifact={"name": "count", "data": {"words": len(words), "characters": len(text)}})
print(f"{len(words)} words")
