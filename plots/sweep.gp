# Goodput along a sweep: simulated with its 95 % confidence interval, and the memoryless closed form with unlimited spares.
summary = sprintf('goodput against %s (%d replicas a point)', key, replicas)
if (logarithmic) { set logscale x }
set xrange [low:high]
set yrange [0:100]
set xlabel key
set ylabel 'goodput [%]'
if (is_text) {
    set title titled(summary)
    plot $points using 1:2 with linespoints title 'simulated', $points using 1:5 with lines title 'memoryless'
} else {
    set label 1 titled(summary) at graph 0, graph 1.05 left font title_font textcolor rgb ink
    plot $points using 1:3:4 with filledcurves fc rgb '#BBDDF0' title '95 % confidence', \
         $points using 1:2 with linespoints pt 7 ps 0.9 lw 1.8 lc rgb '#0072B2' title 'simulated', \
         $points using 1:5 with lines dt 2 lw 1.6 lc rgb '#D55E00' title 'memoryless, unlimited spares'
}
