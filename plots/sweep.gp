# A sweep: above, goodput with its 95 % confidence interval beside the memoryless closed form with unlimited spares; below, where the
# rest of the time goes.
summary = sprintf('goodput against %s (%d replicas a point)', key, replicas)
if (logarithmic) { set logscale x (powers_of_two ? 2 : 10) }
if (logarithmic && !powers_of_two) { set xtics (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) }
set xrange [low:high]
set yrange [bottom:100]
set xlabel key
set ylabel 'goodput [%]'
array use_title[n_uses > 0 ? n_uses : 1]
array use_colour[n_uses > 0 ? n_uses : 1]
if (n_uses > 0) {
    stats $uses using (use_colour[int($0) + 1] = $1, use_title[int($0) + 1] = stringcolumn(2), $1) nooutput
}
if (is_text) {
    set title titled(summary)
    plot $points using 1:2 with linespoints title 'simulated', $points using 1:5 with lines title 'memoryless'
} else {
    set multiplot
    set lmargin at screen 0.085
    set rmargin at screen 0.80
    set tmargin at screen 0.92
    set bmargin at screen (n_uses > 0 ? 0.50 : 0.10)
    set label 1 titled(summary) @as_title
    if (n_uses > 0) {
        set format x ''
        unset xlabel
    }
    set key at screen 0.815, screen 0.93 left top Left reverse
    plot $points using 1:3:4 with filledcurves fc rgb '#BBDDF0' title '95 % confidence', \
         $points using 1:2 with linespoints pt 7 ps 0.9 lw 1.8 lc rgb '#0072B2' title 'simulated', \
         $points using 1:5 with lines dt (12, 6) lw 1.6 lc rgb '#D55E00' title 'memoryless'
    if (n_uses > 0) {
        unset label 1
        set format x '%.0f'
        set xlabel key
        set ylabel 'rest of the time [%]'
        set yrange [0:*]
        set tmargin at screen 0.44
        set bmargin at screen 0.10
        set key at screen 0.815, screen 0.45 left top Left reverse
        # Areas from the top of the stack down, so that each covers the part above the next one.
        plot for [i = n_uses:1:-1] $shares using 1:(column(1 + i)) with filledcurves y1=0 fs solid noborder fc rgb use_colour[i] title use_title[i]
    }
    unset multiplot
}
