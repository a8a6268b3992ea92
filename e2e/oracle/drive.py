#!/usr/bin/env python3
"""boto3 drives every action of a simulator and parses every answer.

usage: drive.py URL

Each raw answer is also compared with botocore's output shape (answers.py), and
the list of actions the simulator says it has must be the list driven here.
Exit 0 when nothing is wrong.
"""

import base64
import gzip
import json
import os
import pathlib
import sys
import time
import urllib.request

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

import answers

REGION = "us-east-1"
DEADLINE = 60
THROTTLED = {"RequestLimitExceeded", "ThrottlingException"}
DATA = pathlib.Path(__file__).parent.parent / "awssim" / "data" / "instance-types.json.gz"
ROLE = "hpcops.dev:role"


class Problems(list):
    """Each text once, cut to a readable length."""

    def append(self, text):
        text = text if len(text) < 600 else text[:600] + " ..."
        if text not in self:
            super().append(text)

    def __iadd__(self, texts):
        for text in texts:
            self.append(text)
        return self


class Drive:
    def __init__(self, url):
        self.url = url
        # An account of its own per run, so that runs do not see each other.
        self.key = "AKIAORACLE" + base64.b32encode(os.urandom(6)).decode().rstrip("=")
        self.driven, self.problems, self.errors = set(), Problems(), set()
        self.ec2, self.fsx, self.ssm, self.sts = map(self.client, ("ec2", "fsx", "ssm", "sts"))

    def client(self, service):
        client = boto3.client(
            service, endpoint_url=self.url, region_name=REGION, aws_access_key_id=self.key,
            aws_secret_access_key="secret", config=Config(retries={"max_attempts": 1}))
        client.meta.events.register(f"after-call.{service}", self.compare)
        return client

    def compare(self, http_response, parsed, model, **_):
        if http_response.status_code >= 500 and model.name != "RunInstances":
            self.problems.append(f"{model.name}: HTTP {http_response.status_code}")
        if http_response.status_code < 300:
            self.driven.add(f"{model.service_model.service_name} {model.name}")
            self.problems += answers.problems(model, http_response.content, parsed)

    def control(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"{self.url}/_sim/{path}?account={self.key}", data=data, method=method)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def until(self, call, holds=lambda answer: True):
        """Repeats `call` until it succeeds and `holds`; AWS is eventually consistent."""
        end, last = time.monotonic() + DEADLINE, None
        while time.monotonic() < end:
            try:
                last = call()
                if holds(last):
                    return last
            except ClientError as error:
                last = error
            time.sleep(0.05)
        raise SystemExit(f"gave up waiting: {last}")

    def refused(self, code, call):
        """The call must be refused with this code, seen through boto3."""
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            try:
                call()
            except ClientError as error:
                found = error.response["Error"]["Code"]
                if found in THROTTLED:
                    time.sleep(0.2)
                    continue
                if found != code:
                    self.problems.append(f"expected {code}, found {error}")
                self.errors.add(code)
                return
            self.problems.append(f"expected {code}, found success")
            return


def tags(kind, role):
    return [{"ResourceType": kind, "Tags": [{"Key": ROLE, "Value": role}]}]


def identity(drive):
    account = drive.sts.get_caller_identity()["Account"]
    assert len(account) == 12 and account.isdigit(), account


def catalogue(drive):
    ec2 = drive.ec2
    known = json.loads(gzip.decompress(DATA.read_bytes()))
    seen = {}
    for page in ec2.get_paginator("describe_instance_types").paginate():
        seen.update({entry["InstanceType"]: entry for entry in page["InstanceTypes"]})
    for name, entry in seen.items():
        if entry != known[name]:
            drive.problems.append(f"{name} differs from the data: {difference(entry, known[name])}")
    assert len(seen) > 1000, len(seen)
    drive.refused("InvalidInstanceType", lambda: ec2.describe_instance_types(InstanceTypes=["x9.huge"]))
    efa = ec2.describe_instance_types(
        Filters=[{"Name": "network-info.efa-supported", "Values": ["true"]}], MaxResults=100)
    assert all(entry["NetworkInfo"]["EfaSupported"] for entry in efa["InstanceTypes"])
    offered = ec2.describe_instance_type_offerings(
        LocationType="availability-zone-id",
        Filters=[{"Name": "instance-type", "Values": ["hpc7g.16xlarge"]}])
    assert [row["Location"] for row in offered["InstanceTypeOfferings"]] == ["use1-az6"], offered
    zones = ec2.describe_availability_zones()["AvailabilityZones"]
    assert {zone["ZoneName"] for zone in zones} == {REGION + letter for letter in "abcdef"}
    images = ec2.describe_images(Owners=["amazon"], Filters=[
        {"Name": "name", "Values": ["aws-parallelcluster-3.16.1-amzn2023-hvm-x86_64-*"]}])["Images"]
    assert len(images) == 1, images
    drive.image = images[0]["ImageId"]
    vpc = ec2.describe_vpcs()["Vpcs"][0]["VpcId"]
    subnets = ec2.describe_subnets(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["Subnets"]
    drive.vpc = vpc
    drive.subnet = {row["AvailabilityZone"]: row["SubnetId"] for row in subnets}[REGION + "a"]
    drive.refused("InvalidSubnetID.NotFound", lambda: ec2.describe_subnets(SubnetIds=["subnet-1"]))


def difference(found, known):
    keys = [key for key in set(found) | set(known) if found.get(key) != known.get(key)]
    return {key: (found.get(key), known.get(key)) for key in keys}


def groups(drive):
    ec2 = drive.ec2
    made = ec2.create_security_group(
        GroupName="oracle", Description="oracle", VpcId=drive.vpc,
        TagSpecifications=tags("security-group", "nodes"))
    drive.group = group = made["GroupId"]
    itself = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]
    ssh = [{"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22,
            "IpRanges": [{"CidrIp": "10.0.0.0/8", "Description": "ssh"}],
            "Ipv6Ranges": [{"CidrIpv6": "fd00::/8"}]}]
    drive.until(lambda: ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=itself))
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=ssh)
    drive.until(lambda: ec2.authorize_security_group_egress(GroupId=group, IpPermissions=itself))
    drive.refused("InvalidPermission.Duplicate",
                  lambda: ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=itself))
    shown = drive.until(
        lambda: ec2.describe_security_groups(GroupIds=[group]),
        lambda answer: len(answer["SecurityGroups"][0]["IpPermissions"]) == 2)["SecurityGroups"][0]
    assert {permission["IpProtocol"] for permission in shown["IpPermissions"]} == {"-1", "tcp"}
    rules = drive.until(
        lambda: ec2.describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [group]}]),
        lambda answer: len(answer["SecurityGroupRules"]) == 5)["SecurityGroupRules"]
    ec2.revoke_security_group_ingress(GroupId=group, IpPermissions=ssh)
    everywhere = next(rule for rule in rules if rule.get("CidrIpv4") == "0.0.0.0/0")
    ec2.revoke_security_group_egress(
        GroupId=group, SecurityGroupRuleIds=[everywhere["SecurityGroupRuleId"]])


def placement(drive):
    ec2 = drive.ec2
    ec2.create_placement_group(
        GroupName="oracle", Strategy="cluster", TagSpecifications=tags("placement-group", "nodes"))
    shown = drive.until(lambda: ec2.describe_placement_groups(GroupNames=["oracle"]))
    assert shown["PlacementGroups"][0]["Strategy"] == "cluster"
    drive.refused("InvalidPlacementGroup.Duplicate",
                  lambda: ec2.create_placement_group(GroupName="oracle", Strategy="cluster"))


def launch(drive):
    ec2 = drive.ec2
    nic = {"DeviceIndex": 0, "InterfaceType": "efa", "SubnetId": drive.subnet,
           "Groups": [drive.group], "DeleteOnTermination": True}
    request = dict(
        ImageId=drive.image, InstanceType="c5n.18xlarge", MinCount=2, MaxCount=2,
        ClientToken="oracle-1", Placement={"GroupName": "oracle"}, NetworkInterfaces=[nic],
        IamInstanceProfile={"Name": "hpcops-node"}, UserData="#!/bin/sh\n", KeyName="cfd-key",
        CpuOptions={"CoreCount": 36, "ThreadsPerCore": 1},
        MetadataOptions={"HttpTokens": "required", "HttpPutResponseHopLimit": 2,
                         "HttpEndpoint": "enabled", "InstanceMetadataTags": "enabled"},
        InstanceInitiatedShutdownBehavior="terminate",
        BlockDeviceMappings=[{"DeviceName": "/dev/xvda",
                              "Ebs": {"VolumeSize": 60, "VolumeType": "gp3"}}],
        TagSpecifications=tags("instance", "nodes") + tags("volume", "nodes")
        + tags("network-interface", "nodes"))
    drive.refused("DryRunOperation", lambda: ec2.run_instances(**request, DryRun=True))
    made = drive.until(lambda: ec2.run_instances(**request))
    again = ec2.run_instances(**request)
    drive.nodes = [row["InstanceId"] for row in made["Instances"]]
    assert drive.nodes == [row["InstanceId"] for row in again["Instances"]]
    drive.refused("IdempotentParameterMismatch",
                  lambda: ec2.run_instances(**{**request, "MinCount": 1}))
    drive.refused("InvalidParameterCombination",
                  lambda: ec2.run_instances(**{**request, "ClientToken": "o2",
                                               "InstanceType": "t3.micro"}))
    drive.control("POST", "capacity", {"type": "c5n.9xlarge", "free": 0})
    drive.refused("InsufficientInstanceCapacity",
                  lambda: ec2.run_instances(ImageId=drive.image, InstanceType="c5n.9xlarge",
                                            MinCount=1, MaxCount=1, SubnetId=drive.subnet))


def head(drive):
    ec2 = drive.ec2
    request = dict(SubnetId=drive.subnet, Groups=[drive.group], ClientToken="oracle-eni",
                   Description="head", TagSpecifications=tags("network-interface", "head"))
    made = ec2.create_network_interface(**request)["NetworkInterface"]
    again = ec2.create_network_interface(**request)["NetworkInterface"]
    nic = made["NetworkInterfaceId"]
    assert nic == again["NetworkInterfaceId"]
    volume = ec2.create_volume(
        AvailabilityZone=REGION + "a", Size=10, VolumeType="gp3", Encrypted=True,
        ClientToken="oracle-vol", TagSpecifications=tags("volume", "state"))["VolumeId"]
    made = drive.until(lambda: ec2.run_instances(
        ImageId=drive.image, InstanceType="c5n.2xlarge", MinCount=1, MaxCount=1,
        ClientToken="oracle-head", IamInstanceProfile={"Name": "hpcops-head"},
        NetworkInterfaces=[{"DeviceIndex": 0, "NetworkInterfaceId": nic}],
        TagSpecifications=tags("instance", "head")))
    drive.head = made["Instances"][0]["InstanceId"]
    drive.until(lambda: ec2.attach_volume(
        VolumeId=volume, InstanceId=drive.head, Device="/dev/sdf"))
    drive.until(lambda: ec2.describe_volumes(VolumeIds=[volume]),
                lambda answer: answer["Volumes"][0]["Attachments"][0]["State"] == "attached")
    drive.refused("VolumeInUse", lambda: ec2.delete_volume(VolumeId=volume))
    drive.until(lambda: ec2.describe_network_interfaces(NetworkInterfaceIds=[nic]),
                lambda answer: answer["NetworkInterfaces"][0]["Status"] == "in-use")
    drive.nic, drive.volume = nic, volume


def instances(drive):
    ec2, everyone = drive.ec2, drive.nodes + [drive.head]

    def rows(answer):
        return [row for group in answer["Reservations"] for row in group["Instances"]]

    def ready(answer):
        return all(row["State"]["Name"] == "running" and "PrivateIpAddress" in row
                   for row in rows(answer))

    shown = rows(drive.until(lambda: ec2.describe_instances(InstanceIds=everyone), ready))
    assert {row["InstanceId"] for row in shown} == set(everyone)
    by_token = rows(ec2.describe_instances(
        Filters=[{"Name": "client-token", "Values": ["oracle-1"]}]))
    assert {row["InstanceId"] for row in by_token} == set(drive.nodes)
    by_role = ec2.get_paginator("describe_instances").paginate(
        Filters=[{"Name": f"tag:{ROLE}", "Values": ["nodes", "head"]}],
        PaginationConfig={"PageSize": 5})
    found = [row["InstanceId"] for page in by_role for row in rows(page)]
    assert sorted(found) == sorted(everyone), found
    ec2.create_tags(Resources=everyone, Tags=[{"Key": "extra", "Value": "1"}])
    ec2.delete_tags(Resources=everyone, Tags=[{"Key": "extra"}])
    drive.until(lambda: ec2.describe_instance_status(InstanceIds=everyone),
                lambda answer: all(row["InstanceStatus"]["Status"] == "ok"
                                   for row in answer["InstanceStatuses"])
                and len(answer["InstanceStatuses"]) == 3)
    sick = ec2.get_paginator("describe_instance_status").paginate(
        Filters=[{"Name": "instance-status.status", "Values": ["impaired"]}],
        PaginationConfig={"PageSize": 100})
    assert not [row for page in sick for row in page["InstanceStatuses"]]
    drive.control("POST", f"instances/{everyone[0]}/health", {"impaired": True, "event": {
        "code": "instance-retirement", "description": "old hardware", "inSeconds": 60}})
    told = ec2.describe_instance_status(Filters=[
        {"Name": "event.code", "Values": ["instance-retirement"]}])["InstanceStatuses"]
    assert [row["InstanceId"] for row in told] == [everyone[0]], told
    assert told[0]["InstanceStatus"]["Details"][0]["ImpairedSince"].tzinfo, told
    assert told[0]["Events"][0]["NotBefore"].tzinfo, told
    drive.control("POST", f"instances/{everyone[0]}/health", {})
    drive.refused("InvalidInstanceID.NotFound",
                  lambda: ec2.describe_instances(InstanceIds=["i-00000000000000000"]))


def file_system(drive):
    fsx = drive.fsx
    request = dict(
        FileSystemType="LUSTRE", StorageCapacity=1200, StorageType="SSD",
        SubnetIds=[drive.subnet], SecurityGroupIds=[drive.group], FileSystemTypeVersion="2.15",
        ClientRequestToken="oracle-fs", Tags=[{"Key": ROLE, "Value": "storage-fsx"}],
        LustreConfiguration={"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 125,
                             "DataCompressionType": "LZ4"})
    made = drive.until(lambda: fsx.create_file_system(**request))["FileSystem"]
    assert fsx.create_file_system(**request)["FileSystem"]["FileSystemId"] == made["FileSystemId"]
    drive.refused("IncompatibleParameterError",
                  lambda: fsx.create_file_system(**{**request, "StorageCapacity": 2400}))
    drive.refused("BadRequest", lambda: fsx.create_file_system(
        **{**request, "StorageCapacity": 3600, "ClientRequestToken": "o2"}))
    fsx.tag_resource(ResourceARN=made["ResourceARN"], Tags=[{"Key": "extra", "Value": "1"}])
    listed = fsx.list_tags_for_resource(ResourceARN=made["ResourceARN"])["Tags"]
    assert {"Key": "extra", "Value": "1"} in listed
    drive.file_system = made["FileSystemId"]
    # Polled slowly: FSx's rate is not EC2's.
    waited = time.monotonic() + DEADLINE
    while time.monotonic() < waited:
        shown = fsx.describe_file_systems(FileSystemIds=[drive.file_system])["FileSystems"][0]
        if shown["Lifecycle"] == "AVAILABLE":
            break
        time.sleep(0.5)
    assert shown["Lifecycle"] == "AVAILABLE", shown
    assert len(shown["LustreConfiguration"]["MountName"]) <= 8
    drive.refused("DependencyViolation",
                  lambda: drive.ec2.delete_security_group(GroupId=drive.group))
    drive.refused("FileSystemNotFound",
                  lambda: fsx.describe_file_systems(FileSystemIds=["fs-00000000000000000"]))


DOCUMENT = {
    "schemaVersion": "2.2", "description": "oracle",
    "parameters": {"payload": {"type": "String", "description": "base64",
                               "allowedPattern": "^[A-Za-z0-9+/=]{1,60000}$"}},
    "mainSteps": [{"action": "aws:runShellScript", "name": "runPayload", "inputs": {
        "timeoutSeconds": "60", "runCommand": ["echo '{{ payload }}'"]}}],
}


def commands(drive):
    ssm = drive.ssm
    drive.until(lambda: ssm.describe_instance_information(
        Filters=[{"Key": "InstanceIds", "Values": [drive.head]}]),
        lambda answer: [row["PingStatus"] for row in answer["InstanceInformationList"]] == ["Online"])
    ssm.create_document(Name="hpcops-oracle", Content=json.dumps(DOCUMENT), DocumentType="Command",
                        DocumentFormat="JSON", TargetType="/AWS::EC2::Instance",
                        Tags=[{"Key": ROLE, "Value": "state"}])
    drive.until(lambda: ssm.describe_document(Name="hpcops-oracle"),
                lambda answer: answer["Document"]["Status"] == "Active")
    drive.refused("DocumentAlreadyExists", lambda: ssm.create_document(
        Name="hpcops-oracle", Content=json.dumps(DOCUMENT), DocumentType="Command"))
    drive.refused("InvalidParameters", lambda: ssm.send_command(
        InstanceIds=[drive.head], DocumentName="hpcops-oracle", Parameters={"payload": ["$(x)"]}))
    drive.control("POST", "bodiless", {"matching": "oracle-payload", "stdout": "x" * 30000})
    payload = base64.b64encode(gzip.compress(b"oracle-payload")).decode()
    sent = ssm.send_command(
        InstanceIds=[drive.head], DocumentName="hpcops-oracle", DocumentVersion="1",
        Parameters={"payload": [payload]}, TimeoutSeconds=60, Comment="oracle")["Command"]
    done = drive.until(lambda: ssm.get_command_invocation(
        CommandId=sent["CommandId"], InstanceId=drive.head),
        lambda answer: answer["Status"] == "Success")
    assert len(done["StandardOutputContent"]) == 24000 and done["ResponseCode"] == 0
    listed = ssm.list_command_invocations(CommandId=sent["CommandId"], Details=True)
    assert len(listed["CommandInvocations"][0]["CommandPlugins"][0]["Output"]) == 2500
    stuck = ssm.send_command(
        InstanceIds=[drive.head], DocumentName="AWS-RunShellScript",
        Parameters={"commands": ["true"], "executionTimeout": ["60"]})["Command"]["CommandId"]
    ssm.cancel_command(CommandId=stuck)
    drive.until(lambda: ssm.get_command_invocation(CommandId=stuck, InstanceId=drive.head),
                lambda answer: answer["Status"] == "Cancelled")
    ssm.delete_document(Name="hpcops-oracle")


def parameters(drive):
    ssm = drive.ssm
    for number in range(12):
        name = f"/hpcops/oracle/{number}"
        drive.until(lambda name=name: ssm.put_parameter(Name=name, Value="{}", Type="String"))
    drive.until(lambda: ssm.put_parameter(
        Name="/hpcops/oracle/0", Value='{"v":2}', Type="String", Overwrite=True))
    drive.refused("ParameterAlreadyExists", lambda: ssm.put_parameter(
        Name="/hpcops/oracle/0", Value="x", Type="String"))
    assert ssm.get_parameter(Name="/hpcops/oracle/0")["Parameter"]["Version"] == 2
    pages = ssm.get_paginator("get_parameters_by_path").paginate(Path="/hpcops", Recursive=True)
    names = [row["Name"] for page in pages for row in page["Parameters"]]
    assert len(names) == len(set(names)) == 12, names
    drive.refused("ParameterNotFound", lambda: ssm.get_parameter(Name="/hpcops/none"))
    ssm.delete_parameter(Name="/hpcops/oracle/0")
    gone = ssm.delete_parameters(Names=["/hpcops/oracle/1", "/hpcops/none"])
    assert gone["DeletedParameters"] == ["/hpcops/oracle/1"]
    assert gone["InvalidParameters"] == ["/hpcops/none"]


def teardown(drive):
    ec2 = drive.ec2
    drive.until(lambda: ec2.detach_volume(VolumeId=drive.volume))
    drive.until(lambda: ec2.delete_volume(VolumeId=drive.volume))
    ended = ec2.terminate_instances(InstanceIds=drive.nodes + [drive.head])
    assert {row["CurrentState"]["Name"] for row in ended["TerminatingInstances"]} == {"shutting-down"}
    drive.refused("InvalidPlacementGroup.InUse",
                  lambda: ec2.delete_placement_group(GroupName="oracle"))
    drive.fsx.delete_file_system(FileSystemId=drive.file_system, ClientRequestToken="oracle-del")
    drive.until(lambda: ec2.delete_placement_group(GroupName="oracle"))
    drive.until(lambda: ec2.delete_network_interface(NetworkInterfaceId=drive.nic))
    drive.until(lambda: ec2.delete_security_group(GroupId=drive.group))
    living = [entry for entry in drive.control("GET", "ledger")
              if entry["deletedAt"] is None and entry["kind"] != "parameter"]
    if living:
        drive.problems.append(f"left over: {living}")
    if drive.control("GET", "warnings"):
        drive.problems.append(f"warnings: {drive.control('GET', 'warnings')}")


def unknown(drive):
    drive.refused("InvalidAction", drive.ec2.describe_fleets)
    drive.refused("UnknownOperationException", drive.fsx.describe_backups)
    drive.refused("UnknownOperationException", drive.ssm.list_commands)
    drive.refused("InvalidAction", drive.sts.get_session_token)
    drive.refused("UnknownParameter", lambda: drive.ec2.run_instances(
        ImageId=drive.image, InstanceType="c5n.18xlarge", MinCount=1, MaxCount=1,
        HibernationOptions={"Configured": True}))


STORIES = [identity, catalogue, groups, placement, launch, head, instances, file_system, commands,
           parameters, unknown, teardown]


def main():
    drive = Drive(sys.argv[1])
    for story in STORIES:
        begun = time.monotonic()
        story(drive)
        print(f"{time.monotonic() - begun:6.2f} s {story.__name__}")
    has = drive.control("GET", "config")["actions"]
    has = {f"{service} {action}" for service, actions in has.items() for action in actions}
    for action in sorted(has - drive.driven):
        drive.problems.append(f"not driven: {action}")
    for problem in drive.problems:
        print("WRONG", problem)
    print(f"{len(drive.driven)} of {len(has)} actions driven, {len(drive.errors)} error codes seen, "
          f"{len(drive.problems)} problems")
    return 1 if drive.problems else 0


if __name__ == "__main__":
    sys.exit(main())
