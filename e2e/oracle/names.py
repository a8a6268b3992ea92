"""Wire names of botocore's shapes, shared by both oracles."""


def query_name(member_name, shape):
    """Name of a member in an EC2 query request (botocore's EC2 serializer)."""
    serialization = shape.serialization
    if "queryName" in serialization:
        return serialization["queryName"]
    name = serialization.get("name")
    return name[0].upper() + name[1:] if name else member_name


def answer_name(member_name, shape):
    """Name of a member in an XML answer."""
    return shape.serialization.get("name", member_name)
