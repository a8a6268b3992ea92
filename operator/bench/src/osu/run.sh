#!/usr/bin/env bash
# One attempt of an OSU micro-benchmark: runs on the first compute node of an allocation, as an unprivileged user,
# in the attempt's folder. Every value comes by environment; none is ever read as code:
#   HPCOPS_MPI_PREFIX      where the MPI is installed (bin/mpirun below it)
#   HPCOPS_MPIRUN_JSON     JSON array of strings: mpirun's own arguments (ranks, placement, fabric, debug output)
#   HPCOPS_PROGRAM_PATH    folder of the programs, e.g. /fsx/osu
#   HPCOPS_BENCHMARK       latency | bw
#   HPCOPS_ARGUMENTS_JSON  JSON array of strings: the program's arguments; default []
# Lines that begin with "hpcops:" are for the parser: when mpirun began and ended, and where each rank ran.
set -euo pipefail

say() { printf 'hpcops: %s\n' "$*"; }
refuse() {
  say "refused: $1" >&2
  exit 64
}
now_ms() {
  local micros=${EPOCHREALTIME/[.,]/}
  printf '%s' "${micros:0:13}"
}

# Writes the elements of the JSON array of strings in the variable named $1, each ended by NUL, so that any character survives.
elements() {
  python3 -c '
import json, os, sys
values = json.loads(os.environ.get(sys.argv[1]) or "[]")
if not isinstance(values, list) or not all(isinstance(v, str) and "\0" not in v for v in values):
    sys.exit("not a JSON array of strings")
sys.stdout.buffer.write(b"".join(v.encode() + b"\0" for v in values))' "$1"
}

export LC_ALL=C PYTHONUNBUFFERED=1
: "${HPCOPS_MPI_PREFIX:?}" "${HPCOPS_PROGRAM_PATH:?}" "${HPCOPS_BENCHMARK:?}"
[[ $HPCOPS_BENCHMARK =~ ^(latency|bw)$ ]] || refuse "benchmark '$HPCOPS_BENCHMARK' is not latency or bw"
mpirun=$HPCOPS_MPI_PREFIX/bin/mpirun
[[ -x $mpirun ]] || refuse "no mpirun at $mpirun"
export PATH="$HPCOPS_MPI_PREFIX/bin:$PATH"
mapfile -d '' -t mpirun_arguments < <(elements HPCOPS_MPIRUN_JSON)
wait "$!" || refuse "HPCOPS_MPIRUN_JSON is not a JSON array of strings"
mapfile -d '' -t arguments < <(elements HPCOPS_ARGUMENTS_JSON)
wait "$!" || refuse "HPCOPS_ARGUMENTS_JSON is not a JSON array of strings"

binary=$HPCOPS_PROGRAM_PATH/osu_$HPCOPS_BENCHMARK
if [[ -x $binary ]]; then
  program=("$binary")
elif [[ -r $binary.py ]]; then
  program=("$(command -v python3)" "$binary.py")
  ((${#arguments[@]} == 0)) || refuse "$binary.py takes no arguments; it would ignore: ${arguments[*]}"
else
  refuse "neither $binary (executable) nor $binary.py found; programPath must hold one of them"
fi

# Each rank tells its host before it becomes the program; /proc is asked because HOSTNAME may be inherited.
# shellcheck disable=SC2016  # expanded by the rank's shell, not by this one
report='read -r host </proc/sys/kernel/hostname
printf "hpcops: rank %s host %s\n" "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${SLURM_PROCID:-unknown}}}" "$host" >&2
exec "$@"'

# What MPI and fabric say of themselves goes to a file of its own and is shown after the table: both in one stream tear
# each other's lines apart.
evidence=$PWD/evidence.log
say "program ${program[-1]}"
# Versions, for the record: the first line that each program says of itself.
version=$("$mpirun" --version 2>/dev/null) || version=
printf '%s\n' "${version%%$'\n'*}"
version=$(PATH="$PATH:/opt/amazon/efa/bin" fi_info --version 2>/dev/null | sed -n 's/^libfabric: //p') || version=
[[ -z $version ]] || say "libfabric $version"
say "mpirun-start epoch-ms=$(now_ms)"
code=0
"$mpirun" "${mpirun_arguments[@]}" bash -c "$report" hpcops-rank "${program[@]}" "${arguments[@]}" 2>"$evidence" || code=$?
cat "$evidence"
say "mpirun-end epoch-ms=$(now_ms) code=$code"
exit "$code"
