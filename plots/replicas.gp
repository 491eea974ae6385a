# How goodput, or the time of a step, is distributed over replicas: the mean with its 95 % confidence interval, and what one run in twenty falls below or above.
summary = sprintf('%s of %d replicas', quantity, replicas)
set xlabel sprintf('%s [%s]', quantity, unit)
number(x, d) = sprintf(sprintf('%%.%df', d), x)
set ylabel 'replicas'
set yrange [0:*]
set boxwidth bin_width * 0.92 absolute
if (is_text) {
    set title titled(summary)
    plot $bins using 1:2 with boxes notitle
} else {
    set label 1 titled(summary) @as_title
    set object 1 rectangle from ci_low, graph 0 to ci_high, graph 1 fc rgb '#D55E00' fs transparent solid 0.25 noborder behind
    set arrow 1 from mean, graph 0 to mean, graph 1 nohead lw 1.8 lc rgb '#D55E00' front
    set arrow 2 from p05, graph 0 to p05, graph 1 nohead lw 1.4 dt (8, 5) lc rgb ink front
    set arrow 3 from p95, graph 0 to p95, graph 1 nohead lw 1.4 dt (8, 5) lc rgb ink front
    plot $bins using 1:2 with boxes fs solid noborder fc rgb '#7FB8D8' title 'replicas', \
         NaN with lines lw 1.8 lc rgb '#D55E00' title sprintf('mean %s %s', number(mean, digits), unit), \
         NaN with boxes fs transparent solid 0.25 noborder fc rgb '#D55E00' title sprintf('its 95 %%: %s to %s', number(ci_low, digits), number(ci_high, digits)), \
         NaN with lines lw 1.4 dt (8, 5) lc rgb ink title sprintf('90 %% of %s: %s to %s', of, number(p05, digits - 1), number(p95, digits - 1))
}
