"""Schemathesis does not know JSON in lines: OpenAPI has it as a list."""

import json

import schemathesis


@schemathesis.deserializer("application/x-ndjson")
def lines(_context, response):
    # splitlines would cut at U+0085 and others, too.
    return [json.loads(line) for line in response.text.split("\n") if line]
