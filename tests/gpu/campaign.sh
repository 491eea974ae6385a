#!/bin/bash
# campaign.sh [FOLDER] - everything that needs a GPU, in one call of less than nine minutes: kernels against references, times beside
# those of other libraries, a stage of a 175B model predicted and measured, a probe, whole small layouts through NCCL with several
# ranks on one GPU, a rank that leaves, memory and race checks. README.md describes the stages and the two calls planned for a GPU
# that is there for fifteen minutes.
#
#   tests/gpu/campaign.sh results                      where msim can be built: with nvcc and the libraries it needs
#   tests/gpu/campaign.sh --build build-carried/bin    makes binaries that need nothing but the C library, CUDA's driver and, when
#   MSIM_BIN=build-carried/bin tests/gpu/campaign.sh   they run, cuBLASLt and NCCL; and uses them where the rest is missing
#
# At most eight files go to FOLDER (default: $OUT, then build-campaign/results): tables, a summary, and everything in all.tar.gz.
# A stage that fails or is missing is reported, and the next begins. The summary is printed last, with the command that runs the
# stages for which no time was left.
#
#   MSIM_BIN              the folder of the binaries; build-carried/bin if it is there and msim cannot be built
#   MSIM_STAGES           a regular expression: only the stages that it matches
#   MSIM_CAMPAIGN_S       the time for all stages, in seconds (default: 520)
#   MSIM_KERNEL_S         the time after which a kernel counts as hung, in seconds (default: 12)
#   MSIM_STAGE_SCALE      multiplies the time limit of each stage (default: 1)
#   MSIM_TOLERANCE        of the predicted steps at full size (default: 5%)
#   MSIM_ARGUMENTS_8B     more arguments of the second of these steps
#   MSIM_PORTABLE_KERNELS when set, kernels made for one architecture are not used
#
# Times are valid only on a GPU that nobody else uses. Clocks and modes of the card are left as they are. Figures are drawn later,
# from the timelines in all.tar.gz: msim plot -o both.png validate_175b.csv.
set -u
cd "$(dirname "$0")/../.." || exit 1
programs="msim kernel_check kernel_time exchange_check"

# copy_programs BUILD FOLDER
copy_programs() {
    mkdir -p "$2"
    cp "$1/msim" "$1/tests/kernels/kernel_check" "$1/tests/kernels/kernel_time" "$1/tests/gpu/exchange_check" "$2"
}

if [ "${1:-}" = --build ]; then
    cmake -S . -B build-carried -G Ninja -DMSIM_CUDA=ON -DMSIM_STATIC_DEPS=ON -DMSIM_OPENBLAS=OFF \
        "-DMSIM_CUDA_ARCHITECTURES=${MSIM_ARCHITECTURES:-90a-real}" || exit 1
    # shellcheck disable=SC2086
    cmake --build build-carried --target $programs || exit 1
    copy_programs build-carried "${2:?the folder for the binaries}"
    exit
fi

export PATH=$PATH:/usr/local/cuda/bin:/usr/local/nvidia/bin # compute-sanitizer, nvcc, nvidia-smi, where nobody put them there
if ! command -v nvidia-smi >/dev/null && [ ! -e /dev/nvidiactl ]; then
    echo "skipped: neither nvidia-smi nor /dev/nvidiactl, so no GPU, on this machine"
    exit 77
fi
final=${1:-${OUT:-build-campaign/results}}
mkdir -p "$final"
final=$(cd "$final" && pwd)
out=$(mktemp -d)
meeting=$(mktemp -d)
trap 'rm -rf "$meeting" "$out"' EXIT
bin=${MSIM_BIN:-}
began=$SECONDS
limit=${MSIM_CAMPAIGN_S:-520}
failures=0
unrun=

# --- stages

left() {
    echo $((limit - (SECONDS - began)))
}

# stage NAME SECONDS COMMAND...: at most so long and at most what is left; output to NAME.log. 77 means there was nothing to run on.
stage() {
    local name=$1 most=$(($2 * ${MSIM_STAGE_SCALE:-1})) rc
    shift 2
    [[ $name =~ ${MSIM_STAGES:-.} ]] || return 1
    [ "$(left)" -lt "$most" ] && most=$(left)
    if [ "$most" -le 5 ]; then
        printf '%-24s not run: out of time\n' "$name" | tee -a "$out/summary.txt"
        unrun="$unrun${unrun:+|}$name"
        return 1
    fi
    local at=$SECONDS
    timeout -k 5 "$most" "$@" >"$out/$name.log" 2>&1
    rc=$?
    case $rc in
    0) printf '%-24s ok, %d s\n' "$name" $((SECONDS - at)) ;;
    77) printf '%-24s %s\n' "$name" "$(head -1 "$out/$name.log")" ;;
    124 | 137) printf '%-24s FAILED: not done within %d s\n' "$name" "$most" ;;
    *) printf '%-24s FAILED: exit %d: %s\n' "$name" "$rc" "$(grep -m1 error "$out/$name.log" || tail -1 "$out/$name.log")" ;;
    esac | tee -a "$out/summary.txt"
    [ $rc -eq 0 ] || [ $rc -eq 77 ] || failures=$((failures + 1))
    keep
    return $rc
}

# What is there so far, should this script itself be ended from outside. Eight files at most, the large ones packed: elsewhere, so
# that an archive half written is no ninth file.
keep() {
    local file
    for file in summary.txt kernel_check.csv kernel_time.csv yardsticks.csv probe_cuda.csv validates.txt validate_175b.json; do
        [ -s "$out/$file" ] && cp "$out/$file" "$final"
    done
    timeout 30 tar -czf "$meeting/all.tar.gz" -C "$out" . && mv "$meeting/all.tar.gz" "$final/all.tar.gz"
}

# --- the machine and the programs

# Libraries of CUDA and NCCL that are not on the loader's path, such as those that come with Python packages.
find_libraries() {
    local name folder
    for name in libcublasLt.so.13 libnccl.so.2; do
        ldconfig -p 2>/dev/null | grep -q "$name" && continue
        for folder in ${LD_LIBRARY_PATH//:/ }; do
            [ -e "$folder/$name" ] && continue 2
        done
        folder=$(dirname "$(timeout 20 find /usr/local /opt /usr/lib "${HOME:-/root}/.local" -name "$name" 2>/dev/null | head -1)")
        [ -n "$folder" ] && [ "$folder" != . ] && export LD_LIBRARY_PATH="$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    done
}

machine() {
    date -u +%Y-%m-%dT%H:%MZ
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.max.sm,clocks.mem,power.limit,temperature.gpu --format=csv
    nvcc --version | tail -2
    uname -r
    nproc
    ldd --version | head -1
    echo "LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}"
    ldconfig -p | grep -E 'libcuda\.so|libcublasLt|libnccl'
    # Not by importing them, which may take longer than the stage.
    python3 -c 'from importlib.metadata import distributions as all
for name, version in sorted({(d.metadata["Name"] or "", d.version) for d in all()}):
    if name.lower().startswith(("torch", "nvidia-")): print(name, version)'
    true
}
export -f machine

# Hopper's own instructions are only in code for 90a, which "native" is not.
build() {
    local architecture=native
    case $(nvidia-smi --query-gpu=compute_cap --format=csv,noheader) in 9.0*) architecture=90a-real ;; esac
    if cmake -S . -B build-campaign -G Ninja -DMSIM_CUDA=ON "-DMSIM_CUDA_ARCHITECTURES=$architecture"; then
        # shellcheck disable=SC2086
        cmake --build build-campaign --target $programs
        return
    fi
    echo "this machine lacks the libraries that msim needs; give MSIM_BIN with binaries built with -DMSIM_STATIC_DEPS=ON"
    return 1
}
export -f build

# --- what stages run

# several N COMMAND...: N processes of one job, on one machine.
several() {
    local n=$1 rank rc=0 pids=()
    shift
    for ((rank = 0; rank < n; rank++)); do
        MSIM_RANK=$rank MSIM_RANKS=$n "$@" &
        pids+=($!)
    done
    for rank in "${pids[@]}"; do
        wait "$rank" || rc=$?
    done
    return $rc
}

exchanges() { # exchanges N FOLDER [TIMEOUT [LEAVER]]
    rm -rf "$2"
    mkdir -p "$2"
    local n=$1
    shift
    several "$n" "$bin/exchange_check" "$@"
}

# watched SECONDS TABLE COMMAND...: appends to the table, and is ended (124) when no line has come for that long.
watched() {
    local most=$1 table=$2 lines=-1 now since=$SECONDS pid
    shift 2
    "$@" >>"$table" &
    pid=$!
    while kill -0 $pid 2>/dev/null; do
        now=$(wc -l <"$table")
        [ "$now" -eq "$lines" ] || since=$SECONDS
        lines=$now
        if [ $((SECONDS - since)) -gt "$most" ]; then
            kill -KILL $pid
            wait $pid 2>/dev/null
            return 124
        fi
        sleep 0.1
    done
    wait $pid
}

# check_kernels SEEDS SIZE TABLE: goes on behind a kernel that hung, or left the GPU unusable for the process that ran it.
check_kernels() {
    local rc=0 worst=0 lines=0 table="$out/$3.csv"
    while [ "$lines" -lt 100 ]; do
        watched "${MSIM_KERNEL_S:-12}" "$table" "$bin/kernel_check" "$1" "$2" "$lines"
        rc=$?
        [ $rc -eq 0 ] || worst=$rc
        [ $rc -eq 3 ] || [ $rc -ge 124 ] || return $worst # broken, hung, or ended by a signal
        lines=$(wc -l <"$table")
        [ "$lines" -gt 0 ] || return $worst
        echo "number $((lines - 1)),,,,BROKE" >>"$table" # one line each behind a head
    done
    return $worst
}

# Timeouts within a stage are --foreground: in a group of their own they would outlive the stage and disturb the next ones.

# time_kernels REPEATS: part by part, so that a kernel that breaks ends its part only.
time_kernels() {
    local part rc worst=0
    for part in norms pointwise ends optimizers mixture mixers attention query_ranges experts products; do
        timeout --foreground -k 5 $((40 * ${MSIM_STAGE_SCALE:-1})) "$bin/kernel_time" "$1" "$part" >>"$out/kernel_time.csv"
        rc=$?
        [ $rc -eq 77 ] && return $rc
        [ $rc -eq 0 ] || worst=$rc
    done
    awk 'NR == 1 || !/^gpu,/' "$out/kernel_time.csv" >"$out/one_head.csv" && mv "$out/one_head.csv" "$out/kernel_time.csv"
    return $worst
}

# The first line of a log says why it was skipped.
yardsticks() {
    python3 tests/gpu/yardsticks.py >"$out/yardsticks.csv" && return
    local rc=$?
    [ $rc -eq 77 ] && cat "$out/yardsticks.csv" && rm "$out/yardsticks.csv"
    return $rc
}

# validate RANKS NAME ARGUMENTS...: as many processes sharing the GPUs there are; both timelines as a table beside the result
validate() {
    local n=$1 name=$2 gpus
    shift 2
    gpus=$(nvidia-smi --list-gpus 2>/dev/null | wc -l)
    rm -rf "${meeting:?}/$name"
    mkdir -p "$meeting/$name"
    gpus=$((gpus ? gpus : 1))
    several "$n" "$bin/msim" validate --device cuda --ranks-per-gpu $(((n + gpus - 1) / gpus)) \
        --meet "$meeting/$name" --format json -o "$out/$name.json" --timeline "$out/$name.csv" --trace "$out/$name.trace.json" "$@"
}

sanitize() { # sanitize TOOL COMMAND...
    command -v compute-sanitizer >/dev/null || { echo "skipped: no compute-sanitizer here"; return 77; }
    compute-sanitizer --tool "$1" --error-exitcode 9 "${@:2}"
}
export -f several exchanges watched check_kernels time_kernels yardsticks validate sanitize

# is_right KERNEL: its row of the table is there and ok
is_right() {
    grep -qs "^$1,.*,ok\$" "$out/kernel_check.csv"
}

# --- the campaign, in order of value

: >"$out/summary.txt"
find_libraries
export MSIM_DATA=${MSIM_DATA:-$PWD/model/spec}
# What the libraries have to say about an error of theirs; not to stdout, where NCCL would.
export NCCL_DEBUG=${NCCL_DEBUG:-WARN} NCCL_DEBUG_FILE=${NCCL_DEBUG_FILE:-$out/nccl.%p.log}
export CUBLASLT_LOG_LEVEL=${CUBLASLT_LOG_LEVEL:-1} CUBLASLT_LOG_FILE=${CUBLASLT_LOG_FILE:-$out/cublaslt.%i.log}
export programs out meeting
stage machine 20 bash -c machine
if [ -z "$bin" ]; then
    if MSIM_STAGES=. stage build 240 bash -c build; then
        bin=$PWD/build-campaign/bin
        copy_programs build-campaign "$bin"
    elif [ -x build-carried/bin/msim ]; then
        bin=build-carried/bin
        echo "with the binaries of build-carried/bin" | tee -a "$out/summary.txt"
    else
        exit 1
    fi
fi
bin=$(cd "$bin" && pwd)
export bin

# One rank of the second of 24 stages: four layers of hidden 12288 over eight tensor-parallel ranks.
stage_175b="--alone 8 --model gpt-175b-megascale --layout tp=8,pp=24,mb=1 --gpus 192 --global-batch 8 --steps 5"
# One of eight stages, four layers of hidden 4096: where the host must not be the bottleneck.
stage_8b="--alone 1 --model llama3-8b --layout pp=8,mb=1 --gpus 8 --global-batch 4 --steps 5 ${MSIM_ARGUMENTS_8B:-}"
tolerance="--tolerance ${MSIM_TOLERANCE:-5%}"

experts="--model mixtral-8x7b --set model.layers=4 --set model.hidden=256 --set model.moe.expert_ffn=512 --set model.ffn_hidden=512 --set model.heads=4
    --set model.kv_heads=2 --set model.vocab=2048 --seq-len 256"
experts=${experts//$'\n'/ }

stage kernel_check 90 bash -c 'check_kernels 24 300 kernel_check'
# A kernel made for one architecture that fails or hangs does not take the rest along.
if [ -e "$out/kernel_check.csv" ] && ! { is_right attention_forward && is_right attention_backward; }; then
    export MSIM_PORTABLE_KERNELS=1
    echo "from here on portable kernels only" | tee -a "$out/summary.txt"
fi
stage kernel_time 90 bash -c 'time_kernels 21'
stage validate_175b 100 bash -c "validate 1 validate_175b $stage_175b $tolerance"
stage validate_8b 60 bash -c "validate 1 validate_8b $stage_8b $tolerance"
stage yardsticks 60 bash -c yardsticks
stage probe_cuda 60 bash -c '"$bin/msim" probe --device cuda --format csv -o "$out/probe_cuda.csv"'
stage validate_1_rank 40 bash -c 'validate 1 validate_1_rank' # no tolerance: kernels of a few microseconds wait for the host
stage nccl_2_ranks 40 bash -o pipefail -c 'exchanges 2 "$meeting/two" 30 | tee "$out/exchanges.csv"'
stage validate_tp2 60 bash -c 'validate 2 validate_tp2 --layout tp=2,sp=1,mb=1'
stage validate_zero3 60 bash -c 'validate 2 validate_zero3 --layout dp=2,zero=3,mb=1'
stage validate_fp8 60 bash -c 'validate 2 validate_fp8 --layout tp=2,sp=1,mb=1 --set job.precision=fp8'
stage memcheck 70 bash -c 'sanitize memcheck "$bin/kernel_check" 2 60'
stage nccl_rank_leaves 40 bash -c 'exchanges 2 "$meeting/leaves" 10 1'
stage validate_pp2 60 bash -c 'validate 2 validate_pp2 --layout pp=2,vpp=2,schedule=interleaved,mb=1'
stage validate_experts 60 bash -c "validate 2 validate_experts $experts --layout dp=2,ep=2,mb=1 --global-batch 4"
stage validate_hybrid 60 bash -c 'validate 2 validate_hybrid --model tiny-hybrid --layout tp=2,sp=1,mb=1'
stage validate_predict 60 bash -c 'validate 2 validate_predict --set model.mtp_layers=1 --dropout 0.1 --clip 1 --layout tp=2,sp=1,mb=1'
stage kernel_wide 60 bash -c 'check_kernels 3 1500 kernel_wide' # long rows and sequences, as far as references are quick
stage nccl_4_ranks 50 bash -c 'exchanges 4 "$meeting/four" 40'
stage synccheck 30 bash -c 'sanitize synccheck "$bin/kernel_check" 1 40'
stage validate_tp2_pp2 70 bash -c 'validate 4 validate_tp2_pp2 --layout tp=2,pp=2,mb=1 --steps 2'
# Of ordinary shared memory: what Hopper's own instructions write there is not known to it.
MSIM_PORTABLE_KERNELS=1 stage racecheck 70 bash -c 'sanitize racecheck "$bin/kernel_check" 1 40'

# --- tables; the summary last, since only the end of a long output may be seen

if [ -s "$out/kernel_time.csv" ]; then
    echo
    echo "memory-bound kernels: fraction of copy bandwidth (aim 0.85); products and attention: share of the tensor cores' peak"
    awk -F, '$1 != "gpu" { printf "%-26s %-44s %10.1f us %8.1f TFLOP/s %6.2f %6.2f\n", $2, $3, $6, $10, $11, $12 }' "$out/kernel_time.csv"
fi
if [ -s "$out/kernel_time.csv" ] && [ -s "$out/yardsticks.csv" ]; then
    echo
    echo "attention, TFLOP/s: ours by wgmma and by mma.sync, FlashAttention, cuDNN; the faster of ours over cuDNN (aim 0.6, then 1)"
    awk -F, '
        $1 == "op" || /^#/ || $2 == "op" { next }
        FILENAME ~ /yardsticks/ { if ($1 ~ /^attention/) { split($3, s, " "); rate[$1 s[1] s[2] s[4], $2] = $5 } next }
        $2 ~ /^attention/ {
            n = split($3, s, " "); key = $2 s[1] s[2] s[4]
            if (s[5] != "window=0" || !((key, "cudnn") in rate || (key, "flash") in rate)) next
            if (split(s[3], heads, "[=/]") == 3 && heads[2] != heads[3]) next
            if (!(key in named)) { named[key] = $2 " " s[1] " " s[2] " " s[4]; order[++keys] = key }
            rate[key, s[n]] = $10
        }
        END {
            for (i = 1; i <= keys; i++) {
                k = order[i]; best = rate[k, "wgmma"] > rate[k, "mma.sync"] ? rate[k, "wgmma"] : rate[k, "mma.sync"]
                printf "%-44s %8.1f %8.1f %8.1f %8.1f  %s\n", named[k], rate[k, "wgmma"], rate[k, "mma.sync"], rate[k, "flash"],
                    rate[k, "cudnn"], (rate[k, "cudnn"] > 0 ? sprintf("%.2f", best / rate[k, "cudnn"]) : "-")
            }
        }' "$out/yardsticks.csv" "$out/kernel_time.csv" | tee "$out/attention.txt"
fi
echo
for result in "$out"/validate_*.json; do
    case $result in *.trace.json) continue ;; esac
    [ -s "$result" ] || continue
    printf '%-24s' "$(basename "$result" .json)"
    grep -E '^  "(predicted_s|measured_s|error_pct)"' "$result" | tr -d '\n'
    echo
done | tee "$out/validates.txt"
echo
if [ -n "$unrun" ]; then
    echo "next: ${MSIM_PORTABLE_KERNELS:+MSIM_PORTABLE_KERNELS=1 }MSIM_BIN=${MSIM_BIN:-$bin} MSIM_CAMPAIGN_S=200 MSIM_STAGES='^($unrun)\$' tests/gpu/campaign.sh \"\$OUT\""
fi >>"$out/summary.txt"
echo "$failures stages failed; $((SECONDS - began)) s" >>"$out/summary.txt"
keep
cat "$out/summary.txt"
echo "results in $final"
[ $failures -eq 0 ]
