#!/bin/bash
# campaign_null.sh NULL_FOLDER - the whole campaign on a GPU that computes nothing (null_cuda.c), so that it does not rot between
# the days on which there is a GPU. NULL_FOLDER holds bin and lib, as CMakeLists.txt builds them. Tools that come with a GPU, and
# PyTorch, have stand-ins. Numbers are not compared, and times are virtual; what is checked is that every stage runs to its end
# and how the campaign reports. Then it is run again with errors that are planted, which it has to find: a launch beyond the
# limits, a program that crashes, a kernel that hangs, too little time.
set -u
null=$(cd "${1:?the folder with bin and lib}" && pwd)
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work LD_LIBRARY_PATH=$null/lib PYTHONPATH=$work/python PATH=$work/tools:$PATH
# The machine may be slow, times mean nothing, and one step at full size is enough.
export MSIM_STAGE_SCALE=10 MSIM_CAMPAIGN_S=5000 MSIM_KERNEL_S=60 MSIM_TOLERANCE=1000%
export MSIM_ARGUMENTS_8B="--set model.hidden=1024 --set model.ffn_hidden=2048 --set model.heads=8 --set model.kv_heads=2"
unset MSIM_PORTABLE_KERNELS MSIM_STAGES MSIM_RANK MSIM_RANKS
failures=0

# check WHAT COMMAND...
check() {
    local what=$1
    shift
    "$@" && return
    echo "FAILED: $what"
    failures=$((failures + 1))
}

# --- stand-ins

tool() { # tool NAME: its text from stdin
    cat >"$work/tools/$1"
    chmod +x "$work/tools/$1"
}

stand_ins() {
    mkdir -p "$work/tools" "$work/python/torch/nn/attention"
    tool nvidia-smi <<'EOF'
#!/bin/sh
case $1 in
--list-gpus) echo "GPU 0: null GPU" ;;
*compute_cap*) echo 9.0 ;;
*) echo "null GPU, 580.0, 143771 MiB, 1980 MHz, 1980 MHz, 3201 MHz, 700 W, 30" ;;
esac
EOF
    tool compute-sanitizer <<'EOF'
#!/bin/sh
[ "$1" = --tool ] && [ "$3" = --error-exitcode ] || exit 2
shift 4
"$@"
EOF
    cat >"$work/python/torch/__init__.py" <<'EOF'
import types
bfloat16 = uint8 = None
class Tensor:
    def fill_(self, value): pass
class Event:
    def __init__(self, enable_timing): pass
    def record(self): pass
    def synchronize(self): pass
    def elapsed_time(self, end): return 1.0
def empty(*sizes, dtype, device): return Tensor()
def randn(*sizes, dtype, device, requires_grad): return Tensor()
def randn_like(tensor): return Tensor()
cuda = types.SimpleNamespace(Event=Event)
autograd = types.SimpleNamespace(grad=lambda out, inputs, gradient, retain_graph: None)
EOF
    : >"$work/python/torch/nn/__init__.py"
    cat >"$work/python/torch/nn/functional.py" <<'EOF'
def linear(a, w): return a
def scaled_dot_product_attention(q, k, v, is_causal): return q
EOF
    cat >"$work/python/torch/nn/attention/__init__.py" <<'EOF'
import contextlib, enum
SDPBackend = enum.Enum("SDPBackend", "FLASH_ATTENTION CUDNN_ATTENTION")
def sdpa_kernel(backend): return contextlib.nullcontext()
EOF
}

# run NAME [VARIABLE=VALUE...]: a campaign whose results are in $work/NAME, its output in $work/NAME.out; gives back its exit status
run() {
    local name=$1
    shift
    env MSIM_BIN="$null/bin" "$@" tests/gpu/campaign.sh "$work/$name" >"$work/$name.out" 2>&1
}

# says NAME PATTERN: a line of the summary
says() {
    grep -Eq -- "$2" "$work/$1/summary.txt"
}

# --- the whole

stages() {
    sed -nE "s/^(MSIM_[A-Z_]+=1 )?stage ([a-z0-9_]+) .*/\2/p" tests/gpu/campaign.sh
}

end_of_output() {
    tail -c 12000 "$work/whole.out" | grep -q '^machine .* ok' && tail -2 "$work/whole.out" | grep -q '^0 stages failed'
}

files() {
    [ "$(find "$work/whole" -type f | wc -l)" -le 8 ] && tar -tzf "$work/whole/all.tar.gz" | grep -q racecheck.log
}

# The portable rows come first, and a row for each kernel.
rows() {
    sed -n 2,3p "$work/whole/kernel_check.csv" | grep -c '^attention_.* portable,.*,ok$' | grep -q 2 &&
        [ "$(wc -l <"$work/whole/kernel_check.csv")" -gt 50 ] && ! grep -q FAILED "$work/whole/kernel_check.csv"
}

attention() {
    tar -xzOf "$work/whole/all.tar.gz" ./attention.txt | grep -Ec '^attention_(for|back)ward.* [0-9.]+$' | grep -q 12
}

# Splits are collective over all ranks: one for the groups of a kind, not one for each group. Two stages of two chunks need 19.
splits() {
    [ "$(sed -nE 's/^nccl,splits=([0-9]+),.*/\1/p' "$work/calls.csv" | sort -n | tail -1)" -le 19 ]
}

whole() {
    local name
    check "the campaign's exit status" run whole MSIM_NULL_REPORT="$work/calls.csv"
    for name in $(stages); do
        check "stage $name" says whole "^$name +ok, [0-9]+ s"
    done
    check "the summary within the last 12000 characters" end_of_output
    check "at most eight files, and what is packed" files
    check "rows of kernel_check" rows
    check "attention beside its yardsticks" attention
    check "splits of communicators" splits
    check "no complaint" sh -c "! tar -xzOf '$work/whole/all.tar.gz' | grep -a 'error: null'"
}

# --- planted errors

# A folder of binaries in which one is another.
with_other() { # with_other NAME: its text from stdin
    rm -rf "$work/other"
    cp -r "$null/bin" "$work/other"
    mv "$work/other/$1" "$work/other/$1.real"
    cat >"$work/other/$1"
    chmod +x "$work/other/$1"
}

fails() {
    ! "$@"
}

planted() {
    with_other exchange_check <<'EOF'
#!/bin/sh
kill -SEGV $$
EOF
    check "a program that crashes fails the campaign" fails run crash MSIM_BIN="$work/other" MSIM_STAGES='machine|nccl_2'
    check "a program that crashes is reported" says crash '^nccl_2_ranks +FAILED: exit 139'

    check "a launch beyond the limits fails the campaign" fails run launch MSIM_NULL_BLOCKS=8 MSIM_STAGES='kernel_check'
    check "a launch beyond the limits is reported" says launch '^kernel_check +FAILED: exit 134.*bad launch'

    check "a kernel that hangs fails the campaign" fails run hang MSIM_NULL_HANG=hopper MSIM_KERNEL_S=6 MSIM_STAGES='kernel_check|validate_1_'
    check "a kernel that hangs is passed over" grep -q '^scan_backward delta,.*,ok' "$work/hang/kernel_check.csv"
    check "a kernel that hangs is not used any more" says hang '^from here on portable kernels only'
    check "stages go on without it" says hang '^validate_1_rank +ok'

    check "without time nothing fails" run late MSIM_CAMPAIGN_S=0
    check "stages without time are named" says late "^next: .*MSIM_STAGES='\^\(machine\|kernel_check\|.*\|racecheck\)"
}

stand_ins
whole
planted
sed 's/^/| /' "$work/whole/summary.txt"
echo "$failures failed; $(grep -c ^cuda "$work/calls.csv") processes on the null GPU"
[ $failures -eq 0 ]
