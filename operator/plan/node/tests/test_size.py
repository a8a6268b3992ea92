"""User data has a hard limit of 16,384 bytes: the largest cluster that may be asked for has to fit."""
import secrets
import unittest

from . import render

LIMIT = 16384
DOCUMENT_LIMIT = 65536


def largest(role):
    """8 queues of 16 nodes, 4 storages, names as long as they may be."""
    config = {
        "version": 1, "role": role, "clusterUid": "5f0e7c1a-8d6b-4f0e-9b1a-" + secrets.token_hex(6),
        "clusterName": "n" * 40 + "." + "c" * 40, "region": "ap-southeast-1", "headIp": "10.100.200.210",
        "user": {"name": "hpc", "uid": 4001},
        "storage": [{"name": "storage-%d" % i, "dnsName": "fs-%s.fsx.ap-southeast-1.amazonaws.com" % secrets.token_hex(9),
                     "mountName": secrets.token_hex(4), "mountPath": "/scratch/area-%d" % i} for i in range(4)],
        "image": {"slurmPrefix": "/opt/slurm", "mpi": {"OpenMPI": "/opt/amazon/openmpi", "IntelMPI": "/opt/intel/mpi/latest"},
                  "defaultUser": "ec2-user"},
    }
    names = [secrets.token_hex(10) for _ in range(8)]
    queues = [{"name": name, "standing": "1-16", "most": 1000, "idleSeconds": 600 + i, "cpus": 36 + i,
               "memoryMiB": 180000 + i, "efa": True} for i, name in enumerate(names)]
    if role == "head":
        config.update(stateVolumeId="vol-" + secrets.token_hex(9)[1:], queues=queues)
    else:
        config.update(queue=names[0], gang="1-1796078041000", attempt=1, slots=",".join(str(2 * i) for i in range(1, 501)))
    return config


class Size(unittest.TestCase):
    def test_the_largest_cluster_fits_in_user_data(self):
        for role in ("head", "compute"):
            with self.subTest(role):
                size = len(render.userdata(largest(role)))
                print("user data of the largest %s: %d of %d bytes" % (role, size, LIMIT))
                self.assertLessEqual(size, LIMIT)

    def test_the_document_fits_and_holds_one_parameter_only(self):
        text = render.document()
        self.assertLessEqual(len(text), DOCUMENT_LIMIT // 2)
        self.assertEqual(text.count("{{"), 1)
        self.assertIn("HPCOPS_PAYLOAD='{{ payload }}'\n", text)

    def test_no_line_of_a_script_ends_its_here_document(self):
        for name, end in (("job.sh", "HPCOPS_BATCH_END"), ("job.py", "HPCOPS_JOB_END")):
            self.assertNotIn(end, render.read(name))


if __name__ == "__main__":
    unittest.main()
