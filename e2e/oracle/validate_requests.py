#!/usr/bin/env python3
"""Validates the requests a simulator recorded against botocore's models.

usage: validate_requests.py URL [ACCOUNT]

Every recorded request (all callers of the account) is turned back into
parameters by the service model and validated: unknown and missing members,
types, bounds, patterns and enumerations. Exit 0 when all are valid.
"""

import json
import re
import sys
import urllib.parse
import urllib.request

import botocore.session
from botocore.validate import ParamValidator

from names import query_name

# Enumerations that grow faster than botocore: a new value is no mistake.
OPEN_ENUMERATIONS = {"InstanceType"}
NUMBERS = {"integer": int, "long": int, "float": float, "double": float}


def main():
    url = sys.argv[1]
    query = "?account=" + urllib.parse.quote(sys.argv[2]) if len(sys.argv) > 2 else ""
    with urllib.request.urlopen(f"{url}/_sim/requests{query}") as answer:
        requests = json.load(answer)
    session = botocore.session.get_session()
    counts, bad = {}, 0
    for request in requests:
        model = session.get_service_model(request["service"])
        problems = check(model, request)
        key = f"{request['service']} {request['action']}"
        counts[key] = counts.get(key, 0) + 1
        for problem in problems:
            bad += 1
            print(f"INVALID {key}: {problem}")
    for key in sorted(counts):
        print(f"{counts[key]:6d} {key}")
    print(f"{len(requests)} requests of {len(counts)} actions, {bad} problems")
    return 1 if bad or not requests else 0


def check(model, request):
    try:
        operation = model.operation_model(request["action"])
    except Exception:  # botocore raises its own type for unknown operations
        return ["no such operation"]
    shape = operation.input_shape
    if model.metadata["protocol"] == "json":
        params = json.loads(request["body"])
        problems = check_headers(model, request)
    else:
        pairs = urllib.parse.parse_qsl(request["body"], keep_blank_values=True)
        tree, problems = unflatten(pairs, model)
        params = {}
        if shape is not None:
            params = restore(tree, shape, request["action"], problems)
    if shape is None:
        return problems + ([f"unexpected {sorted(params)}"] if params else [])
    report = ParamValidator().validate(to_python(params, shape), shape)
    if report.has_errors():
        problems.append(report.generate_report())
    constraints(params, shape, request["action"], problems)
    return problems


def check_headers(model, request):
    expected = f"application/x-amz-json-{model.metadata['jsonVersion']}"
    found = request["contentType"] or ""
    return [] if found.startswith(expected) else [f"content type {found!r}"]


def unflatten(pairs, model):
    """Nested dictionaries of `A.1.B=x`, without Action and Version."""
    tree, problems = {}, []
    for key, value in pairs:
        if key == "Action":
            continue
        if key == "Version":
            if value != model.api_version:
                problems.append(f"version {value}")
            continue
        node, parts = tree, key.split(".")
        for part in parts[:-1]:
            node = node.setdefault(part, {})
            if not isinstance(node, dict):
                problems.append(f"{key} is a value and a structure")
                node = {}
        if parts[-1] in node:
            problems.append(f"{key} is given twice")
        node[parts[-1]] = value
    return tree, problems


def restore(node, shape, path, problems):
    """Parameters as boto3 takes them."""
    if shape.type_name == "structure":
        members = {query_name(name, member): name for name, member in shape.members.items()}
        params = {}
        for wire, value in node.items():
            if wire not in members:
                problems.append(f"{path}: unknown parameter {wire}")
                continue
            name = members[wire]
            params[name] = restore(value, shape.members[name], f"{path}.{wire}", problems)
        return params
    if shape.type_name == "list":
        if sorted(node) != sorted(str(index + 1) for index in range(len(node))):
            problems.append(f"{path}: list indexes {sorted(node)}")
        items = sorted(node.items(), key=lambda item: int(item[0]))
        return [restore(value, shape.member, f"{path}.{index}", problems) for index, value in items]
    return scalar(node, shape, path, problems)


def scalar(text, shape, path, problems):
    kind = shape.type_name
    try:
        if kind == "boolean":
            return {"true": True, "false": False}[text]
        if kind in NUMBERS:
            return NUMBERS[kind](text)
    except (KeyError, ValueError):
        problems.append(f"{path}: {text!r} is no {kind}")
    return text


def to_python(value, shape):
    """JSON numbers of timestamps and blobs need no change for the validator."""
    if shape.type_name == "structure" and isinstance(value, dict):
        return {
            name: to_python(member, shape.members[name]) if name in shape.members else member
            for name, member in value.items()
        }
    if shape.type_name == "list" and isinstance(value, list):
        return [to_python(item, shape.member) for item in value]
    if shape.type_name in ("float", "double") and isinstance(value, int):
        return float(value)
    return value


def constraints(value, shape, path, problems):
    """Upper bounds, patterns and enumerations, which botocore's validator skips."""
    if shape.type_name == "structure":
        for name, member in value.items():
            if name in shape.members:
                constraints(member, shape.members[name], f"{path}.{name}", problems)
    elif shape.type_name == "list":
        bound(len(value), shape, path, problems)
        for item in value:
            constraints(item, shape.member, f"{path}[]", problems)
    elif shape.type_name == "map":
        for item in value.values():
            constraints(item, shape.value, f"{path}{{}}", problems)
    elif shape.type_name == "string" and isinstance(value, str):
        bound(len(value), shape, path, problems)
        if shape.enum and value not in shape.enum and shape.name not in OPEN_ENUMERATIONS:
            problems.append(f"{path}: {value!r} is none of {shape.enum}")
        pattern = compiled(shape.metadata.get("pattern"))
        if pattern and not pattern.search(value):
            problems.append(f"{path}: {value!r} does not match {pattern.pattern}")
    elif shape.type_name in NUMBERS:
        bound(value, shape, path, problems)


def bound(size, shape, path, problems):
    most = shape.metadata.get("max")
    if most is not None and isinstance(size, (int, float)) and size > most:
        problems.append(f"{path}: {size} is over {most}")


def compiled(pattern):
    """Some patterns are Java's; those Python cannot read are not checked."""
    if not pattern:
        return None
    try:
        return re.compile(pattern)
    except re.error:
        return None


if __name__ == "__main__":
    sys.exit(main())
