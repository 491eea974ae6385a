# When training ends: how many replicas have trained their tokens by then, where nine in ten of them lie, and what a cluster without
# failures would take. Replicas differ by failures alone; what the range of the predicted step makes of the median stands beside.
summary = sprintf('when %s tokens are trained, %d replicas: the spread by failures alone', tokens, replicas)
is_known(x) = x == x
set xlabel 'time since the start [days]'
set ylabel 'replicas that have ended [%]'
set yrange [0:100]
# All that the figure names is on its axis.
begin = is_known(fault_free) && fault_free < first ? fault_free : first
begin = is_known(likely_low) && likely_low < begin ? likely_low : begin
end = is_known(likely_high) && likely_high > last ? likely_high : last
span = end - begin > 0 ? end - begin : 1
set xrange [begin - 0.05 * span:end + 0.03 * span]
if (is_text) {
    set title titled(summary)
    plot $ends using 1:2 with steps notitle
} else {
    set label 1 titled(summary) @as_title
    if (is_known(p05) && is_known(p95)) {
        set object 1 rectangle from p05, graph 0 to p95, graph 1 fc rgb '#BBDDF0' fs solid noborder behind
    }
    if (is_known(median)) { set arrow 2 from median, graph 0 to median, graph 1 nohead lw 1.8 lc rgb '#D55E00' front }
    if (is_known(likely_low)) { set arrow 4 from likely_low, 50 to likely_high, 50 heads size screen 0.004, 90 lw 1.4 lc rgb '#666666' front }
    if (is_known(fault_free)) { set arrow 3 from fault_free, graph 0 to fault_free, graph 1 nohead lw 1.4 dt (8, 5) lc rgb ink front }
    plot $ends using 1:2 with steps lw 2.2 lc rgb '#0072B2' title 'replicas', \
         NaN with lines lw 1.8 lc rgb '#D55E00' title (is_known(median) ? sprintf('median %.1f', median) : ''), \
         NaN with boxes fs solid noborder fc rgb '#BBDDF0' title (is_known(p95) ? sprintf('90 %%: %.1f to %.1f', p05, p95) : ''), \
         NaN with lines lw 0 lc rgb '#FFFFFF' title (is_known(mean) ? sprintf('mean %.1f', mean) : ''), \
         NaN with lines lw 1.4 lc rgb '#666666' title (is_known(likely_low) ? sprintf('by the range of the step: %.1f to %.1f', likely_low, likely_high) : ''), \
         NaN with lines lw 1.4 dt (8, 5) lc rgb ink title (is_known(fault_free) ? sprintf('without failures %.1f', fault_free) : '')
}
