#!/usr/bin/env bash
# Every shell script of the repository is shellcheck-clean, every Python file compiles, and the tests of the scripts that run
# on nodes pass.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

mapfile -t shell < <(git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
  if [ -f "$file" ] && { [[ $file == *.sh ]] || head -c 40 "$file" | grep -qaE '^#!.*\b(ba|da)?sh\b'; }; then echo "$file"; fi
done)
shellcheck --external-sources "${shell[@]}"
echo "${#shell[@]} shell scripts are clean"

mapfile -t python < <(git ls-files '*.py')
python3 -c '
import sys
for path in sys.argv[1:]:
    compile(open(path).read(), path, "exec")' "${python[@]}"
echo "${#python[@]} Python files compile"

python3 -m unittest discover --quiet --start-directory e2e/make
while IFS= read -r folder; do
  python3 -m unittest discover --quiet --start-directory "$folder" --top-level-directory "$(dirname "$folder")"
done < <(git ls-files 'operator/*/test_*.py' 'e2e/awssim/*/test_*.py' | xargs -r -n 1 dirname | sort -u)
