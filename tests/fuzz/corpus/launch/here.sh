S=3
cat <<-"E" > ds.json
{"zero_optimization": {"stage": $S}}
E
tee x.yaml >/dev/null <<E
a: $S
E
bash -s <<E
deepspeed --include a:0@b:1 train.py --deepspeed ds.json --per_device_train_batch_size 2 --zero_stage 1 --max_seq_length 64
E
