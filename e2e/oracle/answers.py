"""Compares raw answers with the output shapes of botocore's service models.

boto3 ignores what it does not know, so a misspelt element would pass as an
absent one. Here every element and member must be known, and every value must
have its modelled type.
"""

import json
import xml.etree.ElementTree as ElementTree

from botocore.validate import ParamValidator

from names import answer_name

# Part of every EC2 answer, of no shape.
ENVELOPE = {"requestId", "RequestId", "ResponseMetadata"}


def problems(model, body, parsed):
    """What is wrong with the raw `body` of a successful call, as texts."""
    protocol = model.service_model.metadata["protocol"]
    found = []
    if model.output_shape is None:
        return found
    if protocol in ("ec2", "query"):
        root = ElementTree.fromstring(body)
        if protocol == "query":
            root = next(child for child in root if plain(child.tag).endswith("Result"))
        compare_element(root, model.output_shape, model.name, found)
    else:
        compare_json(json.loads(body), model.output_shape, model.name, found)
    answer = {key: value for key, value in parsed.items() if key != "ResponseMetadata"}
    report = ParamValidator().validate(answer, model.output_shape)
    if report.has_errors():
        found.append(f"{model.name}: {report.generate_report()}")
    return found


def plain(tag):
    return tag.rsplit("}", 1)[-1]


def compare_element(element, shape, path, found):
    if shape.type_name == "structure":
        members = {answer_name(name, member): member for name, member in shape.members.items()}
        for child in element:
            name = plain(child.tag)
            if name in ENVELOPE and name not in members:
                continue
            if name == "return" and "return" not in members and "Return" not in shape.members:
                continue
            if name not in members:
                found.append(f"{path}: unknown element {name}")
            else:
                compare_element(child, members[name], f"{path}.{name}", found)
    elif shape.type_name == "list":
        for child in element:
            if plain(child.tag) != shape.member.serialization.get("name", "member"):
                found.append(f"{path}: list holds {plain(child.tag)}")
            compare_element(child, shape.member, f"{path}[]", found)


def compare_json(value, shape, path, found):
    if value is None:
        found.append(f"{path}: null")
    elif shape.type_name == "structure":
        for name, member in value.items():
            if name not in shape.members:
                found.append(f"{path}: unknown member {name}")
            else:
                compare_json(member, shape.members[name], f"{path}.{name}", found)
    elif shape.type_name == "list":
        for item in value:
            compare_json(item, shape.member, f"{path}[]", found)
    elif shape.type_name == "string" and shape.enum and value not in shape.enum:
        found.append(f"{path}: {value!r} is none of {shape.enum}")
