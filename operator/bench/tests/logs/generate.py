#!/usr/bin/env python3
"""Writes the logs of this folder and the answers they must give (EXPECTED.json).

Each log is printed with the format strings of the program's own sources (named at each writer), so that numbers stand
where the program puts them; the answers are made from the same numbers and never from a parser. Nothing is random.

usage: generate.py [--check]     --check: exit 1 if the folder is not what would be written
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FILES, EXPECTED = {}, {}


def log(name, text, **answer):
    """A log and its answer. `text` is str or bytes."""
    assert name not in FILES, name
    FILES[name] = text if isinstance(text, bytes) else text.encode()
    answer.setdefault("application", name.split("/")[0])
    answer.setdefault("status", "ok")
    EXPECTED[name] = answer


def line_of(text, part):
    """1-based number of the first line that holds a part."""
    for number, line in enumerate(text.split("\n"), 1):
        if part in line:
            return number
    raise AssertionError(part)


def sizes(first, last):
    size = first
    while size <= last:
        yield size
        size = size * 2 if size else 1


def r2(value):
    return float("%.2f" % value)


NOISE = [
    "[n1:12345] 3 more processes have sent help message help-mpi-btl-base.txt / btl:no-nics",
    "libfabric:4242:1718000000:efa:ep_ctrl:efa_rdm_ep_bulk_post():479<warn> send entries used up.",
    "WARNING: a notice with a number in it: 128   17.50",
    "2 more ranks printed the same notice",
    "[ 3420.100001] efa 0000:00:06.0: create_qp:99:(pid 4242): queue pair creation failed",
    "--------------------------------------------------------------------------",
    "  Local host:   n1",
    "srun: warning: can't run 2 processes on 4 nodes, setting nnodes to 2",
    "",
    "real\t0m3.194s",
]


def noisy(text):
    """A line of noise behind every line."""
    lines = text.rstrip("\n").split("\n")
    return "".join("%s\n%s\n" % (line, NOISE[i % len(NOISE)]) for i, line in enumerate(lines))


# --- OSU micro-benchmarks: c/util/osu_util_mpi.c, c/mpi/pt2pt/standard/*.c -------------------------------------------

FIELD = 18


def latency(size, base=1.67):
    return base + size / 9000.0


def bandwidth(size):
    return 12000.0 * size / (size + 20000.0)


def osu_header(columns, sized=True, mark="# "):
    if sized:
        head = "%-*s" % (10, "# Size") + "%*s" % (FIELD, columns[0])
        columns = columns[1:]
    else:
        head = mark + columns[0]
        columns = columns[1:]
    for label in columns:
        width = 12 if label == "Iterations" else FIELD
        head += "%*s" % (width, label)
    return head + "\n"


def osu_row(size, values):
    text = "%-*d" % (10, size) if size is not None else ""
    for index, value in enumerate(values):
        if isinstance(value, str):
            text += "%*s" % (FIELD, value)
        elif isinstance(value, int):
            text += "%*d" % (12 if index == 3 else FIELD, value)
        else:
            width = FIELD if size is not None or index else 17
            text += "%*.2f" % (width, value)
    return text + "\n"


def cell(value):
    if value in ("Pass", "Fail"):
        return value.lower()
    return float(value) if isinstance(value, int) else r2(value)


def osu_table(benchmark, version, unit, rows, damaged=(), **more):
    rows = [[size] + [cell(value) for value in values] for size, values in rows]
    return dict(benchmark=benchmark, version=version, unit=unit, rows=rows, damaged=list(damaged), **more)


def osu():
    # Point to point, 5.8: no data type, latency begins at 0.
    rows = [(size, [latency(size)]) for size in sizes(0, 65536)]
    plain = "# OSU MPI Latency Test v5.8\n" + osu_header(["Latency (us)"]) + "".join(osu_row(*row) for row in rows)
    table = osu_table("osu_latency", "5.8", "us", rows)
    log("osu/ok_latency_v5.8.txt", plain, complete="Unknown", tables=[table])
    log("osu/noisy_latency_v5.8.txt", noisy(plain), complete="Unknown", tables=[table])
    cut = plain[: plain.rindex(".") + 2]
    log("osu/truncated_latency_v5.8.txt", cut, status="partial", complete="No",
        tables=[osu_table("osu_latency", "5.8", "us", rows[:-1], damaged=[65536])])
    doubled = "".join(text + "\n" + text + "\n" for text in plain.rstrip("\n").split("\n"))
    log("osu/failed_every_line_twice_v5.8.txt", doubled, status="failed", reason="malformed")
    split = plain.replace("256  ", "2\n[n2:7] late\n56  ", 1)
    log("osu/truncated_split_size_v5.8.txt", split, status="partial", complete="No", tables=[
        osu_table("osu_latency", "5.8", "us", [row for row in rows if row[0] != 256], damaged=[None, None, 256])])
    tagged = "".join("[1,0]<stdout>:%s\r\n" % line for line in plain.rstrip("\n").split("\n"))
    tagged = tagged.replace("[1,0]<stdout>:16 ", "[1,1]<stderr>:16                      99.99\r\n[1,0]<stdout>:16 ")
    log("osu/tagged_crlf_latency_v5.8.txt", tagged, complete="Unknown", tables=[table])
    stamped = "".join("2024-06-10T07:00:%02d.123456789Z %s\n" % (i, text) for i, text in enumerate(plain.rstrip("\n").split("\n")))
    log("osu/stamped_latency_v5.8.txt", stamped, complete="Unknown", tables=[table])
    hosts = "".join("n1: %s\nn2: 16                      99.99\n" % text for text in plain.rstrip("\n").split("\n"))
    log("osu/pdsh_latency_v5.8.txt", hosts, complete="Unknown", tables=[table])
    colour = "\x1b[1m" + plain.replace("\n16 ", "\n\x1b[0m\x1b[32m16 ")
    log("osu/coloured_latency_v5.8.txt", colour, complete="Unknown", tables=[table])
    comma = plain.replace("v5.8", "v5~8").replace(".", ",").replace("v5~8", "v5.8")
    log("osu/comma_latency_v5.8.txt", comma, complete="Unknown", tables=[table])
    mixed = plain.replace(osu_row(*rows[3]), osu_row(*rows[3]).replace(".", ","))
    log("osu/failed_mixed_commas_latency_v5.8.txt", mixed, status="failed", reason="malformed", line=6)
    ours = ("hpcops: mpirun-start epoch-ms=1718000000123\nhpcops: rank 0 host n1\nhpcops: rank 1 host n2\n" + plain
            + "hpcops: mpirun-end epoch-ms=1718000004567 code=0\n")
    log("osu/ok_own_script_latency_v5.8.txt", ours, complete="Yes", tables=[table], hosts={"n1": 1, "n2": 1})
    log("osu/failed_exit_code_latency_v5.8.txt", ours.replace("code=0", "code=139"), status="partial", complete="No",
        tables=[table], hosts={"n1": 1, "n2": 1})

    # Collectives with -f, 5.7: a blank line first.
    rows = [(size, [latency(size, 31.5), latency(size, 28.5), latency(size, 35.5), 1000 if size <= 8192 else 100])
            for size in sizes(4, 65536)]
    full = ["Avg Latency(us)", "Min Latency(us)", "Max Latency(us)", "Iterations"]
    text = "\n# OSU MPI Allreduce Latency Test v5.7\n" + osu_header(full) + "".join(osu_row(*row) for row in rows)
    log("osu/ok_allreduce_full_v5.7.txt", text, complete="Unknown", tables=[osu_table("osu_allreduce", "5.7", "us", rows)])

    cut = text[: text.rindex("35.") - 4].rstrip() + "\n"
    log("osu/truncated_short_row_allreduce_v5.7.txt", cut, status="partial", complete="No",
        tables=[osu_table("osu_allreduce", "5.7", "us", rows[:-1], damaged=[65536])])

    # 7.5: data type, `Avg Latency(us)` in point to point, percentiles.
    rows = [(size, [latency(size), latency(size, 1.6), latency(size, 1.9), latency(size, 3.1)]) for size in sizes(1, 16384)]
    labels = ["Avg Latency(us)", "P50 Tail Lat(us)", "P90 Tail Lat(us)", "P99 Tail Lat(us)"]
    text = "\n# OSU MPI Latency Test v7.5\n# Datatype: MPI_CHAR.\n" + osu_header(labels) + "".join(osu_row(*row) for row in rows)
    log("osu/new_latency_percentiles_v7.5.txt", text, complete="Unknown", tables=[
        osu_table("osu_latency", "7.5", "us", rows, attributes={"datatype": "MPI_CHAR"}, columns=["avg", "p50", "p90", "p99"])])

    # Validation: a column, and one row that fails.
    rows = [(size, [bandwidth(size), "Pass"]) for size in sizes(1, 16384)]
    head = "# OSU MPI Bandwidth Test v7.5.2\n# Datatype: MPI_CHAR.\n" + osu_header(["Bandwidth (MB/s)", "Validation"])
    text = head + "".join(osu_row(*row) for row in rows)
    log("osu/new_bw_validation_v7.5.2.txt", text, complete="Unknown", validation="pass",
        tables=[osu_table("osu_bw", "7.5.2", "MB/s", rows)])
    rows[-1] = (16384, [bandwidth(16384), "Fail"])
    text = head + "".join(osu_row(*row) for row in rows) + "DATA VALIDATION ERROR: osu_bw exited with status 1 on message size 16384.\n"
    log("osu/failed_validation_v7.5.2.txt", text, status="invalid", complete="Unknown", validation="fail",
        tables=[osu_table("osu_bw", "7.5.2", "MB/s", rows)])

    # Non-blocking collectives with -f: nine values; osu_ibarrier has no size and, before 7.2, no mark.
    wide = ["Overall(us)", "Compute(us)", "Coll. Init(us)", "MPI_Test(us)", "MPI_Wait(us)", "Pure Comm.(us)",
            "Min Comm.(us)", "Max Comm.(us)", "Overlap(%)"]
    def nine(size):
        return [latency(size, base) for base in (77.3, 55.0, 4.9, 0.5, 17.4, 51.2, 51.1, 51.4)] + [56.43]
    rows = [(size, nine(size)) for size in sizes(1, 4096)]
    title = "# OSU MPI Non-blocking All-to-All Latency Test v7.4\n# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait\n\n# Datatype: MPI_CHAR.\n"
    log("osu/new_ialltoall_full_v7.4.txt", "\n" + title + osu_header(wide) + "".join(osu_row(*row) for row in rows),
        complete="Unknown", tables=[osu_table("osu_ialltoall", "7.4", "us", rows)])
    four = [wide[0], wide[1], wide[5], wide[8]]
    rows = [(size, [latency(size, 77.3), 55.01, latency(size, 51.2), 40.5]) for size in sizes(1, 4096)]
    text = "\n# OSU MPI Non-blocking Allgather Latency Test v5.7.1\n# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait\n\n" + osu_header(four)
    log("osu/ok_iallgather_v5.7.1.txt", text + "".join(osu_row(*row) for row in rows), complete="Unknown",
        tables=[osu_table("osu_iallgather", "5.7.1", "us", rows)])
    text = "\n# OSU MPI Barrier Latency Test v7.4\n" + osu_header(full, sized=False) + osu_row(None, [9.37, 8.11, 10.52, 1000])
    log("osu/new_barrier_full_v7.4.txt", text, complete="Unknown",
        tables=[osu_table("osu_barrier", "7.4", "us", [(None, [9.37, 8.11, 10.52, 1000])])])

    # Old: 3.1 prints 0.00 for small messages.
    rows = [(size, [bandwidth(size) / 1000]) for size in sizes(1, 4096)]
    text = "# OSU MPI Bandwidth Test v3.1.1\n" + "# Size        Bandwidth (MB/s)\n" + "".join(osu_row(*row) for row in rows)
    log("osu/old_bw_v3.1.1.txt", text, complete="Unknown", tables=[osu_table("osu_bw", "3.1.1", "MB/s", rows)])
    rows = [(size, [bandwidth(size), bandwidth(size) * 1e6 / size]) for size in sizes(1, 4096)]
    text = ("# OSU MPI Multiple Bandwidth / Message Rate Test v5.3\n# [ pairs: 4 ] [ window size: 64 ]\n"
            + osu_header(["MB/s", "Messages/s"]) + "".join(osu_row(*row) for row in rows))
    log("osu/old_mbw_mr_v5.3.txt", text, complete="Unknown", tables=[
        osu_table("osu_mbw_mr", "5.3", "MB/s", rows, attributes={"pairs": "4", "window_size": "64"}, columns=["MB/s", "Messages/s"])])

    # GPU builds put a tag into the title; one-sided programs say how they synchronise.
    rows = [(size, [latency(size, 5.2)]) for size in sizes(1, 4096)]
    text = ("# OSU MPI-CUDA MANAGED Latency Test v7.0-fork2\n# Send Buffer on DEVICE (D) and Receive Buffer on HOST (H)\n"
            + osu_header(["Latency (us)"]) + "".join(osu_row(*row) for row in rows))
    log("osu/ok_cuda_latency_v7.0.txt", text, complete="Unknown", tables=[
        osu_table("osu_latency", "7.0-fork2", "us", rows,
                  attributes={"model": "CUDA MANAGED", "send_buffer": "DEVICE", "receive_buffer": "HOST"})])
    text = ("# OSU MPI_Put-ROCM Bi-directional Bandwidth Test v7.4\n# Window creation: MPI_Win_allocate\n"
            "# Synchronization: MPI_Win_lock/unlock\n# Datatype: MPI_CHAR.\n# Rank 0 Memory on DEVICE (D) and Rank 1 Memory on HOST (H)\n"
            + osu_header(["Bandwidth (MB/s)"]) + "".join(osu_row(*row) for row in rows))
    log("osu/new_put_bibw_v7.4.txt", text, complete="Unknown", tables=[
        osu_table("osu_put_bibw", "7.4", "MB/s", rows, attributes={
            "datatype": "MPI_CHAR", "model": "ROCM", "rank_0_memory": "DEVICE", "rank_1_memory": "HOST",
            "synchronization": "MPI_Win_lock/unlock", "window_creation": "MPI_Win_allocate"})])

    # Start-up programs print a sentence.
    log("osu/new_init_v7.4.txt", "# OSU MPI Init Test v7.4\nnprocs: 4, min: 210 ms, max: 214 ms, avg: 212 ms\n",
        complete="Unknown", tables=[osu_table("osu_init", "7.4", "ms", [(None, [4, 210, 214, 212])])])
    log("osu/old_hello_v5.0.txt", "# OSU MPI Hello World Test v5.0\nThis is a test with 4 processes\n",
        complete="Unknown", tables=[osu_table("osu_hello", "5.0", None, [(None, [4])])])

    # -V: one column for each window, in two tables.
    windows = [8, 16, 32]
    head = "#      " + "".join("  %10d" % window for window in windows) + "\n"
    def windowed(size, scale):
        return [bandwidth(size) * window * scale for window in windows]
    def windowed_row(size, scale):
        return "%-7d" % size + "".join("  %10.2f" % value for value in windowed(size, scale)) + "\n"
    text = ("# OSU MPI Multiple Bandwidth / Message Rate Test v7.4\n# [ pairs: 2 ] [ window size: varied ]\n\n"
            "# Uni-directional Bandwidth (MB/sec)\n" + head + "".join(windowed_row(size, 1) for size in sizes(1, 64))
            + "\n\n# Message Rate Profile\n" + head + "".join(windowed_row(size, 1e3) for size in sizes(1, 64)))
    log("osu/new_mbw_mr_windows_v7.4.txt", text, complete="Unknown", tables=[
        osu_table("osu_mbw_mr", "7.4", unit, [(size, windowed(size, scale)) for size in sizes(1, 64)],
                  columns=["window_8", "window_16", "window_32"])
        for unit, scale in (("MB/s", 1), ("Messages/s", 1e3))])

    # Several data types under one title; threads before it.
    def typed(kind, base):
        return [(size, [latency(size, base)]) for size in sizes(4, 1024)]
    text = ("# Number of Sender threads: 2 \n# Number of Receiver threads: 2\n# OSU MPI Multi-threaded Latency Test v7.4\n"
            + "".join("# Datatype: %s.\n" % kind + osu_header(["Avg Latency(us)"]) + "".join(osu_row(*row) for row in typed(kind, base))
                      for kind, base in (("MPI_INT", 2.0), ("MPI_FLOAT", 3.0))))
    log("osu/new_latency_mt_types_v7.4.txt", text, complete="Unknown", tables=[
        osu_table("osu_latency_mt", "7.4", "us", typed(kind, base), attributes={
            "datatype": kind, "number_of_receiver_threads": "2", "number_of_sender_threads": "2"})
        for kind, base in (("MPI_INT", 2.0), ("MPI_FLOAT", 3.0))])

    # mpi4py's port: no version, and bandwidth under a label of latency.
    rows = [(size, [bandwidth(size)]) for size in sizes(1, 4096)]
    text = "# MPI Bandwidth Test\n# %-8s%20s\n" % ("Size [B]", "Latency [us]") + "".join(
        "%10d%20.2f\n" % (size, values[0]) for size, values in rows)
    log("osu/ok_mpi4py_bw.txt", text, complete="Unknown", tables=[osu_table("osu_bw", None, "MB/s", rows)])

    # A second attempt after a lost connection; the first is cut.
    first = "# OSU MPI Latency Test v5.8\n" + osu_header(["Latency (us)"]) + "".join(osu_row(size, [99.0]) for size in sizes(0, 64))
    log("osu/ok_second_attempt_v5.8.txt", first + "ssh: connection to n2 closed\n" + plain, complete="Unknown",
        tables=[dict(table, attempts=2)])
    log("osu/failed_abort_v5.8.txt", "\n".join(plain.split("\n")[:2]) + "\nmpirun: one or more ranks ended, job aborted\n",
        status="failed", reason="no data", line=1)
    log("osu/failed_unknown_column_v9.0.txt", "# OSU MPI Latency Test v9.0\n" + osu_header(["Latency (us)", "Jitter(us)"])
        + osu_row(1, [1.0, 2.0]), status="failed", reason="unknown column", line=2)


# --- Intel MPI Benchmarks: src_c/IMB_output.c ------------------------------------------------------------------------

def imb_head(version, benchmarks):
    return ("#----------------------------------------------------------------\n#    Intel(R) MPI Benchmarks %s, MPI-1 part\n"
            "#----------------------------------------------------------------\n# Date                  : Mon Jun 10 06:20:00 2024\n\n\n"
            "# Calling sequence was: \n\n# IMB-MPI1 %s\n\n# Minimum message length in bytes:   0\n# Maximum message length in bytes:   64\n#\n"
            "# List of Benchmarks to run:\n\n%s\n" % (version, " ".join(benchmarks), "".join("# %s\n" % b for b in benchmarks)))


def imb_title(name, processes, labels, extra=""):
    rule = "#" + "-" * (13 * len(labels) - 1) + "\n"
    return "\n%s# Benchmarking %s \n# #processes = %d \n%s%s%s\n" % (
        rule, name, processes, extra, rule, "".join("%13s" % label for label in labels))


def imb_row(size, repetitions, values):
    head = "%13d" % size if size is not None else ""
    return head + "%13d" % repetitions + "".join("%13.2f" % value for value in values) + "\n"


IMB_END = "\n\n# All processes entering MPI_Finalize\n\n"
PING = ["#bytes", "#repetitions", "t[usec]", "Mbytes/sec"]
RANGE = ["#bytes", "#repetitions", "t_min[usec]", "t_max[usec]", "t_avg[usec]"]


def imb_table(name, version, rows, processes, damaged=(), unit="us", **more):
    rows = [[size, float(repetitions)] + [r2(value) for value in values] for size, repetitions, values in rows]
    more.setdefault("attributes", {"processes": str(processes)})
    return dict(benchmark=name, version=version, unit=unit, rows=rows, damaged=list(damaged), **more)


def imb():
    def ping(last=64):
        return [(size, 1000, [latency(size), size / latency(size)]) for size in sizes(0, last)]
    reduce = [(size, 1000, [latency(size, 4.0), latency(size, 5.0), latency(size, 4.5)]) for size in [0] + list(sizes(4, 64))]
    barrier = [(None, 1000, [3.79, 3.91, 3.85])]
    names = ["PingPong", "Allreduce", "Barrier"]

    def body(version):
        text = imb_head(version, names)
        text += imb_title("PingPong", 2, PING, "# ( 2 additional processes waiting in MPI_Barrier)\n") + "".join(imb_row(*row) for row in ping())
        for processes in (2, 4):
            text += imb_title("Allreduce", processes, RANGE) + "".join(imb_row(*row) for row in reduce)
        return text + imb_title("Barrier", 4, RANGE[1:]) + "".join(imb_row(*row) for row in barrier)

    def tables(version, bandwidth_unit="MB/s"):
        return [imb_table("PingPong", version, ping(), 2, units=["", "us", bandwidth_unit]),
                imb_table("Allreduce", version, reduce, 2), imb_table("Allreduce", version, reduce, 4),
                imb_table("Barrier", version, barrier, 4)]

    whole = body("2021.10") + IMB_END
    log("imb/ok_mpi1_2019.6.txt", body("2019 Update 6") .replace("2019 Update 6", "2019.6") + IMB_END, complete="Yes", tables=tables("2019.6"))
    log("imb/new_mpi1_2021.10.txt", whole, complete="Yes", tables=tables("2021.10"))
    log("imb/old_mpi1_4.1.txt", body("4.1") + IMB_END, complete="Yes", tables=tables("4.1", "MiB/s"))
    log("imb/noisy_mpi1_2021.10.txt", noisy(whole), complete="Yes", tables=tables("2021.10"))
    log("imb/truncated_mpi1_2021.10.txt", body("2021.10")[:-4], status="partial", complete="No", tables=tables("2021.10")[:3] + [
        imb_table("Barrier", "2021.10", [], 4, damaged=[None])])
    log("imb/failed_mpi1_2021.10.txt", imb_head("2021.10", names) + imb_title("PingPong", 2, PING)
        + "Abort(1) on node 0: Fatal error in internal_Recv\n", status="failed", reason="no data")
    text = imb_head("2021.10", ["Bcast"]) + imb_title("Bcast", 2, RANGE) + "".join(imb_row(*row) for row in reduce)
    text += "%13d out-of-mem.; needed X=%8.3f GB; use flag \"-mem X\" or MAX_MEM_USAGE>=X (IMB_mem_info.h)\n" % (128, 2.1)
    log("imb/truncated_out_of_memory_2021.10.txt", text + IMB_END, status="partial", complete="No",
        tables=[imb_table("Bcast", "2021.10", reduce, 2, damaged=[128])])
    # -multi 1: groups at the same time, a row each.
    labels = ["Group"] + PING
    rule = "#" + "-" * (13 * 5 - 1) + "\n"
    text = imb_head("2021.10", ["PingPong"]) + "\n" + rule + (
        "# Benchmarking Multi-PingPong \n# ( 2 groups of 2 processes each running simultaneous ) \n# Group  0:     0    1\n# \n"
        "# Group  1:     2    3\n# \n") + rule + "".join("%13s" % label for label in labels) + "\n"
    for size, repetitions, values in ping():
        text += "\n" + "".join("%13d" % group + imb_row(size, repetitions, [values[0] + group, values[1]]) for group in (0, 1))
    log("imb/ok_groups_2021.10.txt", text + IMB_END, complete="Yes", tables=[
        imb_table("Multi-PingPong", "2021.10", [(s, n, [v[0] + group, v[1]]) for s, n, v in ping()], 2,
                  attributes={"group": str(group), "groups": "2", "processes": "2"}) for group in (0, 1)])
    overlap = ["#bytes", "#repetitions", "t_ovrl[usec]", "t_pure[usec]", "t_CPU[usec]", " overlap[%]"]
    rows = [(size, 100, [latency(size, 9.0), latency(size, 8.0), 1.36, 10.92]) for size in [0] + list(sizes(4, 64))]
    text = imb_head("2021.10", ["Ibcast"]).replace("MPI-1 part", "MPI-NBC part") + imb_title("Ibcast", 2, overlap)
    log("imb/ok_nbc_2021.10.txt", text + "".join(imb_row(*row) for row in rows) + IMB_END, complete="Yes",
        tables=[imb_table("Ibcast", "2021.10", rows, 2)])


# --- ANSYS Fluent: the shapes of fluentbench.pl, /parallel/timer/usage and the harness of 2026 R1 --------------------

def timer(iterations, ranks, average, total, extra=""):
    return ("Performance Timer for %d iterations on %d compute nodes\n"
            "  Average wall-clock time per iteration:           %10.3f sec\n"
            "  Global reductions per iteration:                 %10d ops\n"
            "  Message count per iteration:                     %10d messages\n"
            "  Data transfer per iteration:                     %10.3f MB\n"
            "%s"
            "  Total wall-clock time:                           %10.3f sec\n" % (iterations, ranks, average, 83, 133986, 48.405, extra, total))


def timer_metrics(iterations, ranks, average, total, **more):
    return dict({"iterations": iterations, "ranks": ranks, "time_per_iteration_s": average, "global_reductions": 83,
                 "messages": 133986, "data_transfer_mb": 48.405, "total_wall_s": total,
                 "total_per_iteration_s": total / iterations}, **more)


def residuals(first, last, asked):
    rows = ["  iter  continuity  x-velocity  y-velocity     time/iter"]
    rows += ["%6d  %.4e  %.4e  %.4e  0:00:%02d %4d" % (i, 1.0 / i, 2e-3 / i, 1e-3 / i, 10, asked - i) for i in range(first, last + 1)]
    return "\n".join(rows) + "\n"


def fluent():
    classic = ("Read case time = 31.204 seconds\nRead data time = 12.771 seconds\nSolver wall time per iteration = 0.4318 seconds\n"
               "Solver speed = 324.2\nSolver rating = 8003.7\n")
    metrics = {"case_read_s": 31.204, "data_read_s": 12.771, "time_per_iteration_s": 0.4318, "solver_speed": 324.2, "solver_rating": 8003.7}
    log("fluent/ok_bench.out", classic, complete="Unknown", metrics=metrics)
    log("fluent/truncated_bench.out", classic[:-4], status="partial", complete="No",
        metrics={key: value for key, value in metrics.items() if key != "solver_rating"})
    log("fluent/failed_rating_zero.out", classic.replace("8003.7", "0.0"), status="failed", reason="no data", line=5)
    log("fluent/noisy_bench.out", noisy(classic), complete="Unknown", metrics=metrics)
    log("fluent/comma_bench.out", classic.replace(".", ","), complete="Unknown", metrics=metrics)
    log("fluent/tagged_bench.out", "".join("[1,0]<stdout>:%s\n" % text for text in classic.rstrip("\n").split("\n")), complete="Unknown", metrics=metrics)
    log("fluent/failed_waiting.out", "Licensed number of users already reached.\nwaiting 60 s before trying again\n", status="failed", reason="licence", line=1)
    log("fluent/failed_licence.out", "Unable to spawn node: license not available. ANSYS LICENSE MANAGER ERROR:\nFailover feature is not available.\n",
        status="failed", reason="licence", line=1)
    log("fluent/failed_fatal.trn", residuals(1, 3, 25) + "Error: Cannot read file race_car.dat\nError Object: #f\n",
        status="failed", reason="fatal error", line=5)
    run = "Welcome to ANSYS Fluent 2022 R2\n" + residuals(1, 25, 25) + timer(25, 48, 0.431, 10.775)
    simulation = "  Simulation wall-clock time for 25 iterations       23.648 sec\n"
    whole = timer_metrics(25, 48, 0.431, 10.775, simulation_wall_s=23.648)
    log("fluent/ok_timer_2022R2.trn", run + simulation, complete="Unknown", metrics=whole)
    log("fluent/noisy_timer_2022R2.trn", noisy(run + simulation), complete="Unknown", metrics=whole)
    cut = run[: run.index("  Total wall-clock")] + "  Total wall-clock ti"
    log("fluent/truncated_timer_2022R2.trn", cut, status="partial", complete="No",
        metrics={k: v for k, v in timer_metrics(25, 48, 0.431, 10.775).items() if not k.startswith("total_")})
    old = residuals(1, 10, 10) + timer(10, 144, 0.440, 4.400, "  LE wall-clock time per iteration:                     0.040 sec (82.7%)\n"
        "  LE global solves per iteration:                           5 solves\n  LE global wall-clock time per iteration:              0.004 sec (9.1%)\n"
        "  LE global matrix maximum size:                          218\n  AMG cycles per iteration:                            10.992 cycles\n"
        "  Relaxation sweeps per iteration:                        510 sweeps\n  Relaxation exchanges per iteration:                     600 exchanges\n\n")
    old += "  Total CPU time:                                     250.890 sec\n"
    log("fluent/old_timer_2019R3.trn", old, complete="Unknown", metrics=timer_metrics(
        10, 144, 0.44, 4.4, le_wall_s=0.04, total_cpu_s=250.89, le_global_solves=5, le_global_wall_s=0.004, le_global_matrix_size=218,
        amg_cycles=10.992, relaxation_sweeps=510, relaxation_exchanges=600))
    log("fluent/new_harness_2026R1.trn", "Average wall-clock time per case input:   10.52 sec\nAverage wall-clock time per data input:   4.08 sec\n"
        "Million Cell Iteration Per Wall Second =  322.9\n", complete="Unknown",
        metrics={"case_read_s": 10.52, "data_read_s": 4.08, "miups": 322.9})
    log("fluent/new_harness_scaling_2026R1.trn", "Million Cell Iteration Per Wall Second =  322.9\n\nNumProc    MIUPS      Speedup     Efficiency\n"
        "96         168.2      1.00        100.0%\n192        322.9      1.92        96.0%\n", complete="Unknown", metrics={
            "miups": 322.9, "miups{ranks=96}": 168.2, "speedup{ranks=96}": 1.0, "efficiency_pct{ranks=96}": 100.0,
            "miups{ranks=192}": 322.9, "speedup{ranks=192}": 1.92, "efficiency_pct{ranks=192}": 96.0})
    log("fluent/failed_too_few_iterations.trn", residuals(1, 12, 25) + timer(12, 48, 0.431, 5.172), status="failed",
        reason="too few iterations", iterations=[12, 25])
    log("fluent/ok_converged.trn", residuals(1, 12, 25) + "!   12 solution is converged\n" + timer(12, 48, 0.431, 5.172), complete="Unknown",
        metrics=timer_metrics(12, 48, 0.431, 5.172))
    log("fluent/failed_diverged.trn", residuals(1, 3, 25) + "Divergence detected in AMG solver: pressure correction\n" + timer(3, 48, 0.431, 1.293),
        status="failed", reason="diverged", line=5, iterations=[3, 25])
    log("fluent/ok_timer_reset.trn", residuals(1, 35, 35) + timer(25, 48, 0.431, 10.775), complete="Unknown", metrics=timer_metrics(25, 48, 0.431, 10.775))
    two = timer(50, 48, 0.5, 25.0) + timer(200, 48, 0.4, 80.0)
    log("fluent/ok_two_timers.trn", two, complete="Unknown", metrics=timer_metrics(200, 48, 0.4, 80.0))


# --- SeisSol: src/Monitoring/{FlopCounter,Stopwatch,Unit}.cpp at each tag --------------------------------------------

def seissol():
    def lines(prefix, *messages):
        return "".join(prefix + message + "\n" for message in messages)
    info = "Mon Jul 08 06:18:25, Info:  "
    rank = "Rank:        0 | Info    | "
    stamp = "2026-08-22 12:34:56.123 info 0 : "
    old = lines(info, "Welcome to SeisSol ", "464.977 GFLOPS on rank 0 ", "Wall time (via gettimeofday): 123.4 seconds. ",
                "Total   measured HW-GFLOP:  0 ", "Total calculated HW-GFLOP:  11.9672 ", "WP calculated HW-GFLOP:  10.5 ",
                "DR calculated HW-GFLOP:  1.4672 ", "SeisSol done. Goodbye. ")
    parts = {"hw_gflop{category=WP}": 10.5, "hw_gflop{category=DR}": 1.4672}
    log("seissol/old_201703.log", old, complete="Yes", metrics=dict({"elapsed_s": 123.4, "hw_gflop": 11.9672}, **parts))
    ok = lines(info, "Welcome to SeisSol ", "Performance since the start: 3.2 TFLOP/s (rank 0: 464.9 GFLOP/s, average over ranks: 460 GFLOP/s) ",
               "Elapsed time (via clock_gettime): 412.731 seconds. ", "Total calculated HW-GFLOP:  1.5234e+06 ",
               "Total calculated HW-GFLOP/s:  3691.02 ", "Total calculated NZ-GFLOP/s:  2201.5 ", "WP calculated HW-GFLOP:  1.49e+06 ", "Simulation done. ")
    metrics = {"elapsed_s": 412.731, "hw_gflop": 1523400.0, "hw_gflops": 3691.02, "nz_gflops": 2201.5, "hw_gflop{category=WP}": 1490000.0}
    log("seissol/ok_1.0.1.log", ok, complete="Yes", metrics=metrics)
    log("seissol/noisy_1.0.1.log", noisy(ok), complete="Yes", metrics=metrics)
    log("seissol/comma_1.0.1.log", ok.replace("1.5234e+06", "1523400").replace("1.49e+06", "1490000").replace("412.731", "412,731").replace("3691.02", "3691,02")
        .replace("2201.5", "2201,5"), complete="Yes", metrics=metrics)
    stamped = "".join("2024-06-10T07:00:00.5Z %s\n" % text for text in ok.rstrip("\n").split("\n"))
    log("seissol/stamped_1.0.1.log", stamped, complete="Yes", metrics=metrics)
    middle = lines(rank, "Welcome to SeisSol", "Simulation time (total): 1 h 1 min 12.3456 s (min: 1 h 1 min 12.1 s, max: 1 h 1 min 12.5 s)",
                   "Simulation time (compute): 59 min 2.0000 s (min: 59 min 1.9 s, max: 59 min 2.2 s)",
                   "Simulation time (blocking IO): 250.1000 ms (min: 249.9 ms, max: 250.2 ms)",
                   "Total calculated HW-FLOP:  1.5000 PFLOP", "Total calculated NZ-FLOP:  900.0000 TFLOP",
                   "Total calculated HW-FLOP/s:  12.3456 TFLOP/s", "Total calculated NZ-FLOP/s:  9.5000 TFLOP/s",
                   "Time spent in simulation: 1 h 1 min 13.0000 s (min: 1 h 1 min 12.9 s, max: 1 h 1 min 13.1 s)", "Simulation done.")
    log("seissol/ok_1.3.2.log", middle, complete="Yes", metrics={
        "elapsed_s": 3672.3456, "compute_s": 3542.0, "io_s": 0.2501, "hw_gflop": 1.5e6, "nz_gflop": 9e5, "hw_gflops": 12345.6,
        "nz_gflops": 9500.0, "simulation_s": 3673.0})
    new = lines(stamp, "Welcome to SeisSol", "HW-FLOP/s since start: 12.3 TFLOP/s (per rank: (384.1 ± 2.0) GFLOP/s)",
                "Simulation time (total): 1 min 12.3000 s (per rank: (7.2000e+01 ± 1.0e-03) s; range: [7.1e+01, 7.3e+01])",
                "Total calculated HW-FLOP:  900.0000 TFLOP", "Total calculated NZ-FLOP:  550.8000 TFLOP",
                "Total calculated Kernel B:  1.2000 TiB", "NZ part of HW-FLOP: 61.2 %", "Total calculated HW-FLOP/s:  12.4481 TFLOP/s",
                "Neighbor integration calculated HW-FLOP:  300.0000 TFLOP", "Simulation done.")
    log("seissol/new_2026.log", new, complete="Yes", metrics={
        "elapsed_s": 72.3, "hw_gflop": 9e5, "nz_gflop": 550800.0, "nz_part_pct": 61.2, "hw_gflops": 12448.1,
        "hw_gflop{category=Neighbor integration}": 3e5})
    log("seissol/truncated_1.0.1.log", ok[: ok.index("Total calculated HW-GFLOP/s")] + "Total calculated HW-GFLOP/s:  36", status="partial",
        complete="No", metrics={"elapsed_s": 412.731, "hw_gflop": 1523400.0})
    log("seissol/failed_nan.log", lines(info, "Welcome to SeisSol ") + "Mon Jul 08 06:18:25, Error: Detected Inf/NaN in energies. Aborting. \n",
        status="failed", reason="fatal error", line=2)
    log("seissol/failed_killed.log", lines(info, "Welcome to SeisSol ", "464.977 GFLOPS on rank 0 "), status="failed", reason="not found", line=2)


# --- MSC Nastran: layouts of public job scripts and samples; the timer's is unverified -------------------------------

def nastran():
    def page(number):
        return "1    EXAMPLE DECK                                       JUNE 10, 2024  MSC.NASTRAN  6/17/05   PAGE %5d\n\n" % number
    head = ("                                              R E A L   E I G E N V A L U E S\n"
            "   MODE    EXTRACTION      EIGENVALUE            RADIANS             CYCLES            GENERALIZED         GENERALIZED\n"
            "    NO.       ORDER                                                                       MASS              STIFFNESS\n")
    def mode(number, value):
        return "%9d%10d" % (number, number) + "".join("%20.6E" % v for v in (value, value ** 0.5, value ** 0.5 / 6.283, 1.0, value)) + "\n"
    end = "                                        * * * END OF JOB * * *\n"
    whole = page(1) + head + mode(1, 3.1281) + "\n" + mode(2, 128.4) + "\f" + page(2) + head + mode(3, 951.5) + end
    log("nastran/ok_modes.f06", whole, complete="Yes", metrics={"modes": 3, "jobs": 1})
    log("nastran/noisy_modes.f06", noisy(whole), complete="Yes", metrics={"modes": 3, "jobs": 1})
    log("nastran/truncated_modes.f06", whole[: whole.index(end)], status="partial", complete="No", metrics={"modes": 3})
    latin = whole.replace("EXAMPLE DECK", "BEISPIEL GR~SSE").encode().replace(b"~", b"\xd6")
    log("nastran/ok_latin1.f06", latin, complete="Yes", metrics={"modes": 3, "jobs": 1})
    lost = page(1) + head + mode(1, 3.1281) + mode(3, 951.5) + end
    log("nastran/truncated_lost_mode.f06", lost, status="partial", complete="No", metrics={"modes": 1, "jobs": 1})
    log("nastran/failed_fatal.f06", page(1) + " *** USER FATAL MESSAGE 9050 (SEKRRS)\n     RUN TERMINATED DUE TO EXCESSIVE PIVOT RATIOS\n" + end,
        status="failed", reason="fatal error", line=3)
    fortran = whole.replace("E+00", "D+00").replace("E+02", "D+02")
    log("nastran/old_fortran_exponents.f06", fortran, complete="Yes", metrics={"modes": 3, "jobs": 1})
    log("nastran/ok_two_jobs.f06", whole + whole.replace(mode(3, 951.5), ""), complete="Yes",
        metrics={"modes{table=1}": 3, "modes{table=2}": 2, "jobs": 2})
    started = "MSC Nastran started  Sun Nov 30 23:59:41 TSS 2025\n"
    done = "NSEXIT: EXIT(0)\nAnalysis complete 0\nMSC Nastran finished Mon Dec  1 00:03:45 TSS 2025\n"
    timed = "Real:     1234.567 seconds (  0:20:34.567)\nUser:     9123.456 seconds (  2:32:03.456)\nSys:        45.678 seconds (  0:00:45.678)\n"
    log("nastran/old_dates_2014.log", started + done, complete="Unknown", metrics={"elapsed_s{from=dates}": 244.0})
    log("nastran/ok_timer.log", started + done + timed, complete="Yes",
        metrics={"real_s": 1234.567, "user_s": 9123.456, "sys_s": 45.678, "elapsed_s{from=timer}": 1234.567})
    log("nastran/noisy_timer.log", noisy(started + done + timed), complete="Yes",
        metrics={"real_s": 1234.567, "user_s": 9123.456, "sys_s": 45.678, "elapsed_s{from=timer}": 1234.567})
    log("nastran/truncated_timer.log", started + done + timed[: timed.index("Sys:") + 9], status="partial", complete="No",
        metrics={"real_s": 1234.567, "user_s": 9123.456, "elapsed_s{from=timer}": 1234.567})
    modules = (" DAY TIME     ELAPSED     I/O GB   DEL_GB   CPU SEC  DEL_CPU  SUB_DMAP/DMAP_MODULE  MESSAGES\n"
               " 10:17:16      0:01      12.0     0.0       0.1      0.0  SESTATIC  20  IFPL  BEGN\n"
               " 10:45:02   0:27:46   50210.0    12.0    1500.2      0.3  SESTATIC 147  DECOMP BEGN\n")
    log("nastran/new_modules.f04", modules, complete="Unknown", metrics={"elapsed_s{from=module log}": 1666.0})
    log("nastran/failed_memory.log", started + "Error (MM_CORE) malloc failed\nOPEN CORE MEMORY ALLOCATION FAILED\nAnalysis complete 8\n"
        "MSC Nastran finished Mon Dec  1 00:03:45 TSS 2025\n", status="failed", reason="fatal error", line=2)


# --- fio: stat.c and client.c ----------------------------------------------------------------------------------------

PERCENTILES = {"1.000000": 0.5, "50.000000": 1.0, "90.000000": 1.4, "99.000000": 2.0, "99.900000": 5.0, "99.990000": 9.0}


def fio_latency(mean, nanos, bins):
    scale = 1000 if nanos else 1
    out = {"min": int(mean * scale / 2), "max": int(mean * scale * 10), "mean": float(mean * scale), "stddev": float(mean * scale / 8), "N": 1000}
    out["percentile"] = {key: int(mean * scale * factor) for key, factor in PERCENTILES.items()}
    if bins:
        out["bins"] = {str(int(mean * scale) + i): 3 for i in range(40)}
    return out


def fio_direction(bw, mean, nanos=True, bins=False):
    suffix = "_ns" if nanos else ""
    if not bw:
        zero = {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}
        return {"io_bytes": 0, "io_kbytes": 0, "bw_bytes": 0, "bw": 0, "iops": 0.0, "runtime": 0, "total_ios": 0, "short_ios": 0,
                "drop_ios": 0, "slat" + suffix: zero, "clat" + suffix: zero, "lat" + suffix: zero, "bw_min": 0, "bw_max": 0}
    return {"io_bytes": bw * 1024 * 30, "io_kbytes": bw * 30, "bw_bytes": bw * 1024, "bw": bw, "iops": bw / 128.0, "runtime": 30000,
            "total_ios": int(bw / 128.0 * 30), "short_ios": 0, "drop_ios": 0,
            "slat" + suffix: {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0},
            "clat" + suffix: fio_latency(mean, nanos, bins), "lat" + suffix: fio_latency(mean + 2, nanos, False),
            "bw_min": bw - 9, "bw_max": bw + 9, "bw_agg": 100.0, "bw_mean": float(bw), "bw_dev": 3.5, "bw_samples": 60}


def fio_job(name, read=0, write=0, group=0, error=0, nanos=True, bins=False, **more):
    job = {"jobname": name, "groupid": group, "job_start": 1718000000000, "error": error, "eta": 0, "elapsed": 31,
           "job options": {"rw": "rw", "size": "1G"}}
    job["read"] = fio_direction(read, 745, nanos, bins)
    job["write"] = fio_direction(write, 845, nanos, bins)
    job["trim"] = fio_direction(0, 0, nanos)
    job["latency_us"] = {"500": 10.5, "750": 89.5}
    job["iodepth_level"] = {"1": 100.0, "2": 0.0}
    return dict(job, **more)


def fio_metrics(read=0, write=0, labels="job=seq"):
    out = {}
    for direction, bw, mean in (("read", read, 745), ("write", write, 845)):
        if bw:
            values = {"bw_kib": bw, "iops": bw / 128.0, "runtime_s": 30.0}
            for kind, centre in (("clat", mean), ("lat", mean + 2)):
                of = {"min": int(centre * 1000 / 2) / 1000, "max": centre * 10.0, "mean": float(centre), "stddev": centre / 8,
                      "p50": float(centre), "p90": int(centre * 1000 * 1.4) / 1000, "p99": centre * 2.0, "p99.9": centre * 5.0, "p99.99": centre * 9.0}
                values.update({"%s_%s_us" % (kind, key): value for key, value in of.items()})
            out.update({"%s_%s{%s}" % (direction, key, labels): value for key, value in values.items()})
    return out


def micros(metrics):
    """Microseconds are whole numbers in 2.x."""
    out = {}
    for key, value in metrics.items():
        whole = "lat" in key and "_us" in key and "mean" not in key and "stddev" not in key
        out[key] = float(int(value + 0.001)) if whole else value
    return out


def fio_text(jobs, version="fio-3.36", key="jobs", **top):
    document = dict({"fio version": version, "timestamp": 1718000000, "time": "Mon Jun 10 06:13:20 2024",
                     "global options": {"ioengine": "libaio", "direct": "1", "bs": "128k"}}, **top)
    document[key] = jobs
    document["disk_util"] = [{"name": "nvme0n1", "read_ios": 12, "util": 99.5}]
    return json.dumps(document, indent=2).replace('":', '" :') + "\n"


def fio():
    ok = fio_text([fio_job("seq", 512000, 498000)])
    both = fio_metrics(512000, 498000)
    log("fio/ok_3.36.json", ok, complete="Yes", metrics=both)
    log("fio/old_2.2.json", fio_text([fio_job("seq", 512000, 498000, nanos=False)], "fio-2.2.10"), complete="Yes", metrics=micros(both))
    log("fio/new_bins_3.41.json", fio_text([fio_job("seq", 512000, 498000, bins=True)], "fio-3.41", timestamp_ms=1718000000123), complete="Yes", metrics=both)
    notices = "fio: file /fsx/bench.dat is larger than the default random generator range\nfio: using the 64-bit generator\n"
    log("fio/noisy_3.36.txt", notices + noisy(ok) + "fio: done\n", complete="Yes", metrics=both)
    log("fio/truncated_3.36.json", ok[: ok.rindex("}")], status="failed", reason="incomplete")
    log("fio/failed_error_3.36.json", fio_text([fio_job("seq", 512000, 498000, error=5)]), status="failed", reason="fatal error")
    log("fio/failed_nothing_moved_3.36.json", fio_text([fio_job("seq")]), status="failed", reason="no data")
    log("fio/truncated_one_job_failed_3.36.json", fio_text([fio_job("seq", 512000), fio_job("other", 5000, error=28)]), status="partial",
        complete="No", metrics=fio_metrics(512000))
    log("fio/ok_minified_3.36.json", json.dumps(json.loads(ok), separators=(",", ":")), complete="Yes", metrics=both)
    two = fio_text([fio_job("a", 512000), fio_job("b", 256000)])
    metrics = dict(fio_metrics(512000, labels="job=a"), **fio_metrics(256000, labels="job=b"))
    metrics.update({"read_bw_kib": 768000, "read_iops": 6000.0})
    log("fio/ok_two_jobs_3.36.json", two, complete="Yes", metrics=metrics)
    same = fio_text([fio_job("a", 512000), fio_job("a", 256000)])
    metrics = dict(fio_metrics(512000, labels="job=a,number=0"), **fio_metrics(256000, labels="job=a,number=1"))
    metrics.update({"read_bw_kib": 768000, "read_iops": 6000.0})
    log("fio/ok_numjobs_3.36.json", same, complete="Yes", metrics=metrics)
    apart = fio_text([fio_job("a", 512000), fio_job("b", 256000, group=1)])
    metrics = dict(fio_metrics(512000, labels="job=a,group=0"), **fio_metrics(256000, labels="job=b,group=1"))
    metrics.update({"read_bw_kib{group=0}": 512000, "read_iops{group=0}": 4000.0, "read_bw_kib{group=1}": 256000, "read_iops{group=1}": 2000.0})
    log("fio/ok_two_groups_3.36.json", apart, complete="Yes", metrics=metrics)
    states = "".join(fio_text([fio_job("seq", bw, eta=eta)]) for bw, eta in ((100, 20), (200, 10), (512000, 0)))
    log("fio/ok_status_interval_3.36.json", states, complete="Yes", metrics=fio_metrics(512000))
    log("fio/truncated_status_interval_3.36.json", states[:-40], status="partial", complete="No", metrics=fio_metrics(200))
    log("fio/truncated_still_running_3.36.json", fio_text([fio_job("seq", 100, eta=20)]), status="partial", complete="No", metrics=fio_metrics(100))
    log("fio/ok_unknown_eta_3.36.json", fio_text([fio_job("seq", 512000, eta=2147483647)]), complete="Yes", metrics=fio_metrics(512000))
    nan = fio_text([fio_job("seq", 512000)]).replace('"iops" : 4000.0', '"iops" : -nan', 1)
    log("fio/truncated_nan_2.2.json", nan, status="partial", complete="No", metrics={
        key: value for key, value in fio_metrics(512000).items() if "iops" not in key})
    clients = fio_text([fio_job("seq", 512000, hostname="n1", port=8765), fio_job("seq", 256000, hostname="n2", port=8765), fio_job("All clients", 768000, hostname="n2", port=8765)],
                       key="client_stats")
    metrics = dict(fio_metrics(512000, labels="job=seq,host=n1"), **fio_metrics(256000, labels="job=seq,host=n2"))
    metrics.update(fio_metrics(768000, labels="job=All clients"))
    log("fio/ok_clients_3.36.json", clients, complete="Yes", metrics=metrics)


# --- IOR: src/ior-output.c at 3.0.1, 3.3.0 and 4.0.0 -----------------------------------------------------------------

def pp(value):
    """PPDouble: what IOR does with a number."""
    if value < 0:
        return "%-10s " % "-"
    return ("%-10.6f " if value < 1 else "%-10.2f " if value < 3600 else "%-10.0f ") % value


def said(value):
    """The number that pp() leaves of a value."""
    return float(pp(value))


def ior_rows(rates, operations=("write", "read")):
    return [(operation, i, rate * (1.0 if operation == "write" else 1.2)) for i, rate in enumerate(rates) for operation in operations]


def ior_text(rates, version="3.3.0", new=True, operations=("write", "read"), summary=True):
    text = ("IOR-%s: MPI Coordinated Test of Parallel I/O\nBegan               : Mon Jun 10 06:20:00 2024\n"
            "Command line        : ior -w -r -i %d -t 1m -b 4g -o /fsx/ior.dat\nMachine             : Linux n1\nTestID              : 0\n\n"
            "Options: \napi                 : POSIX\nnodes               : 2\ntasks               : 8\nclients per node    : 4\n"
            "repetitions         : %d\nxfersize            : 1 MiB\nblocksize           : 4 GiB\n\nResults: \n\n" % (version, len(rates), len(rates)))
    if new:
        text += "access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter\n"
        text += "------    ---------  ----       ----------  ---------- ---------  --------   --------   --------   --------   ----\n"
    else:
        text += "access    bw(MiB/s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter\n"
        text += "------    ---------  ---------- ---------  --------   --------   --------   --------   ----\n"
    for operation, i, rate in ior_rows(rates, operations):
        text += "%-10s" % operation + pp(rate)
        if new:
            text += pp(rate) + pp(0.0042)
        text += pp(4194304) + pp(1024) + pp(0.0011) + pp(32768 / rate) + pp(0.0009) + pp(32768 / rate + 0.002) + "%-4d\n" % i
    if new:
        text += "remove    -          -          -           -          -          -          -          -          0.5344     0   \n"
    for operation in operations:
        most = max(rate for name, _, rate in ior_rows(rates, operations) if name == operation)
        text += "Max %-6s %.2f MiB/sec (%.2f MB/sec)\n" % (operation.capitalize() + ":", most, most * 1.048576)
    if summary:
        text += "\nSummary of all tests:\n" + ior_summary(rates, new, operations)
    return text + "Finished            : Mon Jun 10 06:22:11 2024\n"


def ior_summary(rates, new, operations):
    head = "%-9s %10s %10s %10s %10s" % ("Operation", "Max(MiB)", "Min(MiB)", "Mean(MiB)", "StdDev")
    if new:
        head += " %10s %10s %10s %10s %10s %10s %13s" % ("Max(OPs)", "Min(OPs)", "Mean(OPs)", "StdDev", "Mean(s)", "Stonewall(s)", "Stonewall(MiB)")
    else:
        head += " %10s" % "Mean(s)"
    text = head + " Test# #Tasks tPN reps fPP reord reordoff reordrand seed segcnt   blksiz    xsize aggs(MiB)   API RefNum\n"
    for operation in operations:
        of = [rate for name, _, rate in ior_rows(rates, operations) if name == operation]
        mean = sum(of) / len(of)
        deviation = (sum((rate - mean) ** 2 for rate in of) / len(of)) ** 0.5
        four = "%10.2f %10.2f %10.2f %10.2f " % (max(of), min(of), mean, deviation)
        text += "%-9s " % operation + four + (four if new else "") + "%10.5f " % (32768 / mean)
        if new:
            text += "%10s %13s " % ("NA", "NA")
        text += "%5d %6d %3d %4d %3d %5d %8d %9d %4d %6d %8d %8d %9.1f %3s %6d\n" % (
            0, 8, 4, len(of), 0, 0, 1, 0, 0, 1, 4294967296, 1048576, 32768.0, "POSIX", 0)
    return text


def ior_metrics(rates, new=True, operations=("write", "read"), summary=True, printed=said, facts=True):
    out = {}
    for operation, i, rate in ior_rows(rates, operations):
        values = {"bw_mib": rate, "open_s": 0.0011, "transfer_s": 32768 / rate, "close_s": 0.0009, "total_s": 32768 / rate + 0.002}
        if new:
            values.update({"iops": rate, "latency_s": 0.0042})
        out.update({"%s_%s{iter=%d}" % (operation, key, i): printed(value) for key, value in values.items()})
    for operation in operations:
        of = [rate for name, _, rate in ior_rows(rates, operations) if name == operation]
        seen = [printed(rate) for rate in of]
        mean = sum(of) / len(of)
        out[operation + "_mean_mib"] = r2(mean) if summary else sum(seen) / len(seen)
        out[operation + "_max_mib"] = max(seen)
        if summary:
            out[operation + "_stdev_printed"] = r2((sum((rate - mean) ** 2 for rate in of) / len(of)) ** 0.5)
        if len(seen) > 1:
            centre = sum(seen) / len(seen)
            out[operation + "_stdev_sample_mib"] = (sum((rate - centre) ** 2 for rate in seen) / (len(seen) - 1)) ** 0.5
    if facts:
        out.update({"reps": len(rates), "nodes": 2, "tasks": 8, "tasks_per_node": 4})
    return out


def ior():
    rates = [1501.2, 1498.8, 1510.0]
    ok = ior_text(rates)
    log("ior/ok_3.3.0.txt", ok, complete="Yes", metrics=ior_metrics(rates))
    comma = "\n".join(text if ":" in text and not text.startswith("Max") else text.replace(".", ",") for text in ok.split("\n"))
    log("ior/comma_3.3.0.txt", comma.replace("reps fPP", "reps fPP"), complete="Yes", metrics=ior_metrics(rates))
    tagged = "".join("[1,0]<stdout>:%s\n" % text for text in ok.rstrip("\n").split("\n"))
    log("ior/tagged_3.3.0.txt", tagged, complete="Yes", metrics=ior_metrics(rates))
    log("ior/old_3.0.1.txt", ior_text(rates, "3.0.1", new=False), complete="Yes", metrics=ior_metrics(rates, new=False))
    fast = [33645.2, 40211.7]
    log("ior/ok_fast_integers_3.3.0.txt", ior_text(fast), complete="Yes", metrics=ior_metrics(fast))
    log("ior/noisy_3.3.0.txt", noisy(ok).replace("\nwrite ", "\n5: stonewalling pairs accessed: 1138\nior WARNING: inconsistent file size by different tasks.\nwrite ", 1),
        complete="Yes", metrics=ior_metrics(rates))
    log("ior/truncated_in_summary_3.3.0.txt", ok[: ok.rindex("read ") + 30], status="partial", complete="No", metrics={
        key: value for key, value in ior_metrics(rates).items() if key != "read_stdev_printed"} | {
        "read_mean_mib": sum(said(rate * 1.2) for rate in rates) / 3})
    log("ior/truncated_in_rows_3.3.0.txt", ok[: ok.index("\nremove ") - 30], status="partial", complete="No",
        metrics=ior_cut(rates))
    log("ior/failed_3.3.0.txt", ok[: ok.index("write ")] + "ior ERROR: open64(\"/fsx/ior.dat\", 66, 0664) failed, errno 28, No space left on device (aiori-POSIX.c:412)\n",
        status="failed", reason="fatal error")
    log("ior/ok_no_summary_3.3.0.txt", ior_text(rates, summary=False), complete="Yes", metrics=ior_metrics(rates, summary=False))
    log("ior/new_4.0.0.json", ior_json(rates), complete="Yes", metrics=ior_metrics(rates, printed=four))
    log("ior/old_broken_3.2.0.json", "IOR-3.2.0: MPI Coordinated Test of Parallel I/O\n" + ior_json(rates).replace("    ],\n", "\n", 1),
        complete="Yes", metrics=ior_metrics(rates, printed=four))
    csv = "access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),open(s),wr/rd(s),close(s),total(s),numTasks,iter\n" + "".join(
        "%s,%.4f,%.4f,%.4f,%.4f,%.4f,%.4f,%.4f,%.4f,%.4f,%d,%d\n" % (operation, rate, rate, 0.0042, 4194304, 1024, 0.0011, 32768 / rate, 0.0009,
                                                                  32768 / rate + 0.002, 8, i) for operation, i, rate in ior_rows(rates))
    log("ior/ok_4.0.0.csv", csv, complete="Unknown", metrics=ior_metrics(rates, summary=False, printed=four, facts=False))
    log("ior/failed_unknown_column.txt", ok.replace("  iter\n", "  iter   jitter\n"), status="failed", reason="unknown column")


def ior_cut(rates):
    """The last row of reading is cut and the summary is gone."""
    out = ior_metrics(rates, summary=False)
    seen = [said(rate * 1.2) for rate in rates[:-1]]
    out = {key: value for key, value in out.items() if not (key.startswith("read_") and key.endswith("{iter=2}"))}
    mean = sum(seen) / 2
    out.update({"read_mean_mib": mean, "read_max_mib": max(seen), "read_stdev_sample_mib": (sum((s - mean) ** 2 for s in seen)) ** 0.5})
    return out


def four(value):
    return float("%.4f" % value)


def ior_json(rates):
    records = ",\n".join(
        "      {\n" + ", \n".join('        "%s": %s' % (key, value) for key, value in (
            ("access", '"%s"' % operation), ("bwMiB", "%.4f" % rate), ("blockKiB", "%.4f" % 4194304), ("xferKiB", "%.4f" % 1024),
            ("iops", "%.4f" % rate), ("latency", "%.4f" % 0.0042), ("openTime", "%.4f" % 0.0011), ("wrRdTime", "%.4f" % (32768 / rate)),
            ("closeTime", "%.4f" % 0.0009), ("totalTime", "%.4f" % (32768 / rate + 0.002)))) + "\n      }" for operation, i, rate in ior_rows(rates))
    sums = []
    for operation in ("write", "read"):
        of = [rate for name, _, rate in ior_rows(rates) if name == operation]
        mean = sum(of) / len(of)
        sums.append("    {\n" + ", \n".join('      "%s": %s' % pair for pair in (
            ("operation", '"%s"' % operation), ("API", '"POSIX"'), ("TestID", 0), ("numTasks", 8), ("tasksPerNode", 4), ("repetitions", len(of)),
            ("bwMaxMIB", "%.4f" % max(of)), ("bwMinMIB", "%.4f" % min(of)), ("bwMeanMIB", "%.2f" % mean),
            ("bwStdMIB", "%.2f" % (sum((rate - mean) ** 2 for rate in of) / len(of)) ** 0.5), ("xsizeMiB", "%.4f" % 32768))) + "\n    }")
    return ('{\n  "Version": "4.0.0", \n  "Began": "Mon Jun 10 06:20:00 2024", \n  "Command line": "ior -w -r -i 3 -O summaryFormat=JSON", \n'
            '  "Machine": "Linux n1", \n  "tests": [\n    {\n    "TestID": 0, \n    "StartTime": "Mon Jun 10 06:20:00 2024", \n'
            '    "Parameters": {\n      "testID": 0, \n      "nodes": 2, \n      "repetitions": %d\n    }, \n    "Options": {\n      "nodes": 2, \n'
            '      "tasks": 8, \n      "clients per node": 4\n    }, \n    "Results": [\n%s\n    ],\n    "max": {\n      "writeMiB": %.4f, \n      "readMiB": %.4f\n    }\n'
            '  }\n  ],\n  "summary": [\n%s\n  ], \n  "Finished": "Mon Jun 10 06:22:11 2024"\n}\n' % (
                len(rates), records, max(rates), max(rates) * 1.2, ",\n".join(sums)))


# --- any other program: declared by command/*.declaration.json -------------------------------------------------------

def command():
    FILES["command/text.declaration.json"] = (json.dumps({
        "metrics": [{"name": "wall_s", "unit": "s", "better": "Lower", "regex": r"Loop time of (\S+) on"},
                    {"name": "ranks", "regex": r"Loop time of \S+ on (?<value>\d+) procs"},
                    {"name": "rate", "unit": "ns/day", "better": "Higher", "regex": r"^Performance: (\S+) ns/day", "pick": "Last"}],
        "sanity": ["^Total wall time"], "failure": ["ERROR", "Lost atoms"]}, indent=2) + "\n").encode()
    FILES["command/json.declaration.json"] = (json.dumps({
        "metrics": [{"name": "wall_s", "unit": "s", "better": "Lower", "jsonPointer": "/result/0/wall time"},
                    {"name": "rate", "unit": "1/s", "better": "Higher", "jsonPointer": "/result/0/a~1b"}],
        "failure": ["^FAILED"]}, indent=2) + "\n").encode()
    ok = ("LAMMPS (2 Aug 2023)\nPerformance: 10.5 ns/day\nPerformance: 12.25 ns/day\nLoop time of 3.25 on 8 procs for 100 steps with 32000 atoms\n"
          "Total wall time: 0:00:04\n")
    metrics = {"wall_s": 3.25, "ranks": 8, "rate": 12.25}
    text = {"declaration": "command/text.declaration.json"}
    log("command/ok_text.log", ok, complete="Yes", metrics=metrics, **text)
    log("command/noisy_text.log", noisy(ok), complete="Yes", metrics=metrics, **text)
    log("command/old_no_end_text.log", ok.replace("Total wall time: 0:00:04\n", "") .replace("LAMMPS", "Total wall time\nLAMMPS"), complete="Unknown", metrics=metrics, **text)
    log("command/truncated_text.log", ok[: ok.index("Total")], status="failed", reason="not found", **text)
    log("command/failed_text.log", ok.replace("Performance: 12.25 ns/day", "ERROR: Lost atoms: original 32000 current 31998"), status="failed",
        reason="fatal error", line=3, **text)
    document = json.dumps({"name": "x", "result": [{"wall time": 3.25, "a/b": 1.5e3}, {"wall time": 9}]}, indent=2) + "\n"
    document_metrics = {"wall_s": 3.25, "rate": 1500.0}
    log("command/new_document.json", document, complete="Unknown", metrics=document_metrics, declaration="command/json.declaration.json")
    log("command/noisy_document.txt", noisy(document), complete="Unknown", metrics=document_metrics, declaration="command/json.declaration.json")
    log("command/truncated_document.json", document[:-3], status="failed", reason="incomplete", declaration="command/json.declaration.json")


def main():
    for write in (osu, imb, fluent, seissol, nastran, fio, ior, command):
        write()
    FILES["EXPECTED.json"] = (json.dumps(EXPECTED, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()
    check, stale = "--check" in sys.argv, []
    for name, data in FILES.items():
        path = os.path.join(HERE, name)
        old = open(path, "rb").read() if os.path.exists(path) else None
        if old == data:
            continue
        stale.append(name)
        if not check:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as out:
                out.write(data)
    known = set(FILES) | {"generate.py"}
    extra = [os.path.relpath(os.path.join(folder, name), HERE) for folder, _, names in os.walk(HERE) for name in names]
    extra = [name for name in extra if name not in known]
    if check and (stale or extra):
        sys.exit("not what generate.py writes: %s; not from it: %s" % (stale, extra))
    print("%d logs" % len(EXPECTED))


if __name__ == "__main__":
    main()
