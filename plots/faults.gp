# What a fault trace is made of: causes by number, with the mean time that one lasts.
beside = slow + planned > 0 ? sprintf('; %d slow, %d announced', slow, planned) : ''
summary = sprintf('%d failures, one in %.3g h, %.3g per node and day, Weibull shape %.2f', failures, mtbf_h, per_node_day, shape).beside
stats $causes using 2 nooutput
most = STATS_max
set yrange [n_rows - 0.4:-0.6]
set ytics scale 0
set grid noytics
set border 1
set xrange [0:most * 1.2]
set xlabel 'faults; beside them how long one lasts, mean'
set lmargin 32
lasts(h) = h > 0 ? sprintf('%.3g h', h) : 'no time'
if (is_text) {
    unset xtics
    unset xlabel
    set border 2
    set tmargin 3
    set bmargin 1
    set yrange [n_rows:-1]
    set title titled(summary)
    strip(n, h) = repeated('=', n / most * (text_width - 62)).sprintf(' %d, %s', n, lasts(h))
    plot $causes using (0):1:(strip($2, $3)) with labels left offset 1,0 notitle, \
         $causes using (NaN):1:ytic(4) with points notitle
} else {
    set label 1 titled(summary) @as_title
    plot $causes using (0):1:(0):2:($1 - 0.3):($1 + 0.3) with boxxyerror fs solid noborder fc rgb '#7FB8D8' notitle, \
         $causes using 2:1:(lasts($3)) with labels left offset 1,0 textcolor rgb muted notitle, \
         $causes using (NaN):1:ytic(4) with points notitle
}
