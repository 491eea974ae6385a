# How goodput is distributed over replicas; the mean with its 95 % confidence interval.
summary = sprintf('goodput of %d replicas: mean %.2f %% (%.2f to %.2f), 5th to 95th percentile %.2f to %.2f %%', replicas, mean, ci_low, ci_high, p05, p95)
set xlabel 'goodput [%]'
set ylabel 'replicas'
set yrange [0:*]
set boxwidth bin_width * 0.92 absolute
if (is_text) {
    set title titled(summary)
    plot $bins using 1:2 with boxes notitle
} else {
    set label 1 titled(summary) at graph 0, graph 1.05 left font title_font textcolor rgb ink
    set arrow 1 from mean, graph 0 to mean, graph 1 nohead lw 1.8 lc rgb '#D55E00' front
    plot $bins using 1:2 with boxes fs solid noborder fc rgb '#7FB8D8' title 'replicas', \
         NaN with lines lw 1.8 lc rgb '#D55E00' title 'mean'
}
