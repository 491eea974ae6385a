# Predicted against measured step times, both logarithmic, with a band of +-10 %; beside it the errors, which four decades hide.
set label 1 titled(sprintf('predicted against measured, %d runs, mean absolute error %.1f %%', n_points, mape)) @as_title
array group_colour[n_groups]
array group_marker[n_groups]
array group_title[n_groups]
describe(name, n, error) = n > 0 ? sprintf('%s  (%d, %.1f %%)', name, n, error) : name.'  (0)'
stats $groups using (i = int($1) + 1, group_colour[i] = $2, group_marker[i] = marker[int($3) + 1], \
    group_title[i] = describe(stringcolumn(4), $5, $6), $1) nooutput
set logscale xy
first = low / 1.4
last = high * 1.4
set xrange [first:last]
set yrange [first:last]
set format xy '%g'
if (last / first < 100) { # decades alone would leave an axis with one number
    do for [decade = floor(log10(first)):floor(log10(last))] for [digit in '1 2 5'] {
        set xtics add (real(digit) * 10**decade)
        set ytics add (real(digit) * 10**decade)
    }
}
set xlabel 'measured step time [s]'
set ylabel 'predicted step time [s]'
set samples 200
if (is_text) {
    set key outside right top vertical width 2
    plot x with lines title 'equal', \
         for [i = 1:n_groups] $points using ($3 == i - 1 ? $1 : NaN):2 with points title group_title[i]
} else {
    set multiplot
    set lmargin at screen 0.08
    set rmargin at screen 0.63
    set tmargin at screen 0.905
    set bmargin at screen 0.08
    set key at screen 0.66, screen 0.91 left top Left reverse spacing 1.25 title 'table (runs, mean error)' left
    plot '+' using 1:($1 / 1.1):($1 * 1.1) with filledcurves fs solid 1.0 noborder fc rgb '#E9E9E9' title 'within 10 %', \
         x with lines lw 1.0 lc rgb '#777777' title 'equal', \
         for [i = 1:n_groups] $points using ($3 == i - 1 ? $1 : NaN):2 with points pt group_marker[i] ps 0.8 lc rgb group_colour[i] title group_title[i]
    unset label 1
    unset key
    unset logscale y
    set ytics autofreq
    set lmargin at screen 0.73
    set rmargin at screen 0.985
    set tmargin at screen 0.44
    error(measured, predicted) = 100 * (predicted / measured - 1)
    set yrange [*:*]
    stats $points using (error($1, $2)) nooutput
    set yrange [1.1 * (STATS_min < -15 ? STATS_min : -15):1.1 * (STATS_max > 15 ? STATS_max : 15)]
    set ylabel 'error of a run [%]'
    plot '+' using 1:(-10):(10) with filledcurves fs solid 1.0 noborder fc rgb '#E9E9E9', \
         0 with lines lw 1.0 lc rgb '#777777', \
         for [i = 1:n_groups] $points using ($3 == i - 1 ? $1 : NaN):(error($1, $2)) with points pt group_marker[i] ps 0.5 lc rgb group_colour[i]
    unset multiplot
}
