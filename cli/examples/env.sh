# Made for this page: what train.sh sources.
export NODES=4
export TP=4
