"""Holds documents against schema/*.json both ways: what a document has is in its schema, and what the schema has is in
some document that a test makes."""

import json

from sbxtest import SOURCE

try:
    import jsonschema
except ImportError:
    jsonschema = None


def load(name):
    """The schema of a document, by the name that the document bears: "sbx.run/1"."""
    return json.loads((SOURCE / f"schema/{name.replace('/', '.')}.json").read_text())


class Held:
    """The documents of one name that a test makes."""

    def __init__(self, name, closed=False):
        """`closed`: the schema lets a document have other members, and none here has one."""
        self.name = name
        self.schema = load(name)
        for _, part in self._parts() if closed else ():
            if "properties" in part:
                part.setdefault("additionalProperties", False)
        jsonschema.Draft202012Validator.check_schema(self.schema)
        self.checker = jsonschema.Draft202012Validator(self.schema)
        self.seen = set()

    def hold(self, document):
        """Fails where the document is not as its schema says; returns it. Only the first event of a run names its schema."""
        errors = [f"{list(error.path)}: {error.message}" for error in self.checker.iter_errors(document)]
        assert not errors and document.get("schema", self.name) == self.name, f"{self.name}: {errors}\n{json.dumps(document)}"
        self._walk(document, self.schema, "")
        return document

    def hold_as(self, document, definition):
        """Fails where the document is not as that definition of the schema says."""
        checker = self.checker.evolve(schema={"$ref": f"#/$defs/{definition}", "$defs": self.schema["$defs"]})
        errors = [f"{list(error.path)}: {error.message}" for error in checker.iter_errors(document)]
        assert not errors, f"{definition}: {errors}\n{json.dumps(document)}"
        self._walk(document, self.schema["$defs"][definition], definition)

    def unseen(self):
        """The members that no document had: each by its place in the schema."""
        return self._members() - self.seen

    def open_objects(self):
        """The places where a document may have members that the schema does not name."""
        return {place for place, part in self._parts() if "properties" in part and part.get("additionalProperties") is not False}

    def _resolved(self, part, place):
        while "$ref" in part:
            place = part["$ref"].removeprefix("#/$defs/")
            part = self.schema["$defs"][place]
        return part, place

    def _walk(self, value, part, place):
        part, place = self._resolved(part, place)
        for form in (*part.get("oneOf", []), *part.get("anyOf", [])):
            if self.checker.evolve(schema={**form, "$defs": self.schema.get("$defs", {})}).is_valid(value):
                self._walk(value, form, place)
        if isinstance(value, dict):
            for name, member in value.items():
                if name in part.get("properties", {}):
                    self.seen.add(f"{place}.{name}")
                    self._walk(member, part["properties"][name], f"{place}.{name}")
                elif isinstance(part.get("additionalProperties"), dict):
                    self._walk(member, part["additionalProperties"], f"{place}.*")
        if isinstance(value, list) and "items" in part:
            for item in value:
                self._walk(item, part["items"], place)

    def _parts(self):
        """Each part of the schema with its place; a definition's place is its name."""
        left = [("", self.schema), *self.schema.get("$defs", {}).items()]
        while left:
            place, part = left.pop()
            yield place, part
            left += [(place, form) for form in (*part.get("oneOf", []), *part.get("anyOf", []))]
            left += [(f"{place}.{name}", member) for name, member in part.get("properties", {}).items()]
            left += [(f"{place}.*", part["additionalProperties"])] if isinstance(part.get("additionalProperties"), dict) else []
            left += [(place, part["items"])] if isinstance(part.get("items"), dict) else []

    def _members(self):
        return {f"{place}.{name}" for place, part in self._parts() for name in part.get("properties", {})}
