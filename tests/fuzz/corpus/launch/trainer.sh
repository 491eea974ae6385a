export NPROC=8
accelerate launch --config_file fsdp.yaml --num_processes $NPROC run_clm.py \
  --model_name_or_path meta-llama/Llama-2-7b-hf --per_device_train_batch_size 4 --gradient_accumulation_steps 2 \
  --block_size 4096 --bf16 --gradient_checkpointing true --learning_rate 2e-5 --output_dir out
