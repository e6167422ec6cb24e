"""The OpenAPI document of the server, from the types that it decodes."""

from typing import Any

import msgspec

from towpath.serving.http.messages import Answer, Outcome, RecommendBody, SimilarBody, SwapBody

_REF = "#/components/schemas/{name}"
_REFUSED = {
    "400": "The body does not fit, or asks for too much.",
    "401": "A token is missing or wrong.",
    "403": "This server has no tokens for /admin, so it is closed.",
    "404": "There is no such item, or no such arm.",
    "409": "The model of the arm does not know which items are alike.",
    "413": "The body is too large.",
    "429": "Too many requests.",
    "503": "The exposure log cannot be written, so nothing is served.",
}


def openapi_document() -> dict[str, Any]:  # a JSON object
    """The document, version 3.1."""
    kinds = (RecommendBody, SimilarBody, Outcome, SwapBody, Answer)
    references, schemas = msgspec.json.schema_components(kinds, ref_template=_REF)
    recommend, similar, outcome, swap, answer = references
    several = {"anyOf": [outcome, {"type": "array", "items": outcome}]}
    received = {"type": "object", "properties": {"received": {"type": "integer"}}}
    error = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Towpath", "version": "1"},
        "paths": {
            "/recommend": _post("The best items for a user.", recommend, answer, error),
            "/similar": _post("The items most like one item.", similar, answer, error),
            "/outcomes": _post("What users did with what they were shown.", several, received, error),
            "/admin/models": _post("Serve an arm from another model.", swap, {"type": "object"}, error),
            "/health": _get("Whether the process answers."),
            "/ready": _get("Whether models are loaded and the log is open."),
            "/metrics": _get("Counts and durations for Prometheus."),
        },
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


Schema = dict[str, Any]


def _post(summary: str, body: Schema, answer: Schema, error: Schema) -> Schema:
    refused = {status: {"description": text, "content": _json(error)} for status, text in _REFUSED.items()}
    return {
        "post": {
            "summary": summary,
            "security": [{}, {"token": []}],
            "requestBody": {"required": True, "content": _json(body)},
            "responses": {"200": {"description": "Done.", "content": _json(answer)}, **refused},
        }
    }


def _get(summary: str) -> Schema:
    return {"get": {"summary": summary, "responses": {"200": {"description": "Yes."}}}}


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}
