# What placements of ranks cost on hashed uplinks, from the CSV of tests/bench/placement.sh (sim/network/placement.csv):
#     gnuplot -e "rows='sim/network/placement.csv'; picture='placement.png'" plots/placement.gp
# Across, how the uplinks of the ToRs are built; up, what contention adds to the step. A mark per seed of the hash, a bar at their
# mean. Left panel without, right panel with an exchange of embedding gradients between the first and the last stage.
set terminal pngcairo size 1300,560 font 'sans,11' background '#FFFFFF'
set output picture
set datafile separator comma
set encoding utf8
set border 3 lc rgb '#888888'
set tics out nomirror scale 0.5 font 'sans,10' textcolor rgb '#333333'
set grid ytics lt 1 lc rgb '#E4E4E4'
set style fill solid noborder
blue = '#0072B2'
vermilion = '#D55E00'
built = '"1:1 as 32 of 400G" "1:1 as 64 of 200G" "2:1 as 16 of 400G" "4:1 as 8 of 400G"'
placements = 'data_first pipeline_first'
rows_of(tied, p, b) = sprintf("< awk -F, '$2==\"%s\" && $3==\"%s\" && $1==\"%s\"' '%s'", tied, word(placements, p), word(built, b), rows)
added(alone, step) = 100 * (step / alone - 1)
array mean[16]
array most[16]
do for [i = 1:2] { do for [p = 1:2] { do for [b = 1:4] {
    stats rows_of(i == 1 ? 'false' : 'true', p, b) using (added($6, $5)) nooutput name 'cost'
    mean[(i - 1) * 8 + (p - 1) * 4 + b] = cost_mean
    most[(i - 1) * 8 + (p - 1) * 4 + b] = cost_max
} } }
colour(p) = p == 1 ? blue : vermilion
at(p, b) = b + (p == 1 ? -0.18 : 0.18)
set xrange [0.5:4.5]
set yrange [0:18]
set xtics ("1:1\n32 × 400G" 1, "1:1\n64 × 200G" 2, "2:1\n16 × 400G" 3, "4:1\n8 × 400G" 4)
set boxwidth 0.32
set label 1 "MegaScale's step on 12,288 GPUs: what placements cost where uplinks are hashed" at screen 0.02,0.955 left font 'sans,13'
set multiplot
do for [i = 1:2] {
    set lmargin at screen 0.06 + (i - 1) * 0.49
    set rmargin at screen 0.06 + (i - 1) * 0.49 + 0.43
    set tmargin at screen 0.84
    set bmargin at screen 0.17
    set title (i == 1 ? 'embedding tables apart' : 'one embedding table on the first and the last stage') font 'sans,12' offset 0,-0.4
    set xlabel 'uplinks of a ToR with 64 host ports of 200 Gbps' offset 0,-0.7
    if (i == 1) { set ylabel 'what contention adds to the step [%]' offset 1,0 } else { unset ylabel }
    if (i == 2) { unset label 1 }
    if (i == 1) { set key at screen 0.985,0.975 right top horizontal maxrows 1 samplen 1.5 width 1 font 'sans,10.5' } else { unset key }
    do for [p = 1:2] { do for [b = 1:4] {
        value = mean[(i - 1) * 8 + (p - 1) * 4 + b]
        set label 100 + p * 10 + b sprintf('%.1f', value) at at(p, b), most[(i - 1) * 8 + (p - 1) * 4 + b] + 0.3 center font 'sans,9' textcolor rgb '#222222' offset 0,0.35
    } }
    plot for [p = 1:2] for [b = 1:4] '+' using (at(p, b)):(mean[(i - 1) * 8 + (p - 1) * 4 + b]) every ::0::0 with boxes fillcolor rgb colour(p) \
             title (b > 1 ? '' : p == 1 ? "data-parallel groups under one set of ToRs (MegaScale's)" : 'stages of a replica side by side'), \
         for [p = 1:2] for [b = 1:4] rows_of(i == 1 ? 'false' : 'true', p, b) using (at(p, b)):(added($6, $5)) with points pt 6 ps 0.9 lc rgb '#222222' \
             title (p == 1 && b == 1 ? 'a seed of the hash' : '')
}
unset multiplot
