S=3
cat  {"stage": $S}}
E
tee x.yaml >/dev/null <<E
a: $S
E
bash -s <<E
deepspeed --include a:0@b:1 train.py --deepspeed ds.json --per_devicein.py --deepspeed ds.json --per_deviceMMMMMMMMMM]train_batch_size 2 --zero_stage 1 --max_seq_leng>/devth 64
E
