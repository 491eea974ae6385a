# A sweep of two things or more: goodput along the one with most values, a curve for each value of the others, with 95 % confidence
# intervals; where both have many, a map.
summary = sprintf('goodput (%d replicas a point)', replicas)
array line_colour[n_series]
array line_title[n_series]
stats $series using (i = int($1) + 1, line_colour[i] = $2, line_title[i] = stringcolumn(3), $1) nooutput
if (is_map) {
    array column_title[n_columns]
    stats $columns using (column_title[int($1) + 1] = stringcolumn(2), $1) nooutput
    set xrange [-0.5:n_columns - 0.5]
    set yrange [-0.5:n_series - 0.5]
    set xtics ()
    set ytics ()
    do for [i = 1:n_columns] { set xtics add (column_title[i] i - 1) }
    do for [i = 1:n_series] { set ytics add (line_title[i] i - 1) }
    set xlabel key
    set ylabel others
    unset grid
    if (is_text) {
        set title titled(summary)
        plot $points using 6:5:(sprintf('%.0f', $2)) with labels notitle
    } else {
        set lmargin at screen 0.11
        set rmargin at screen 0.86
        set tmargin at screen 0.92
        set bmargin at screen 0.14
        set label 1 titled(summary) @as_title
        set cbrange [bottom:100]
        set cblabel 'goodput [%]'
        set palette defined (0 '#7A0403', 0.35 '#D55E00', 0.65 '#F0E442', 0.85 '#56B4E9', 1 '#0072B2')
        dark(x) = x < bottom + 0.35 * (100 - bottom) || x > bottom + 0.93 * (100 - bottom)
        plot $points using 6:5:2 with image pixels notitle, \
             $points using (numbers && !dark($2) ? $6 : NaN):5:(sprintf('%.0f', $2)) with labels textcolor rgb '#222222' font small_font notitle, \
             $points using (numbers && dark($2) ? $6 : NaN):5:(sprintf('%.0f', $2)) with labels textcolor rgb '#FFFFFF' font small_font notitle
    }
} else {
    if (logarithmic) { set logscale x (powers_of_two ? 2 : 10) }
    if (logarithmic && !powers_of_two) { set xtics (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) }
    set xrange [low:high]
    set yrange [bottom:100]
    set xlabel key
    set ylabel 'goodput [%]'
    # One that lies under another is larger.
    if (is_text) {
        set title titled(summary)
        plot for [i = 1:n_series] $points using ($5 == i - 1 ? $1 : NaN):2 with linespoints title others.' '.line_title[i]
    } else {
        set lmargin at screen 0.085
        set rmargin at screen 0.80
        set tmargin at screen 0.92
        set bmargin at screen 0.10
        set label 1 titled(summary) @as_title
        set key at screen 0.815, screen 0.93 left top Left reverse title others left
        plot for [i = 1:n_series] $points using ($5 == i - 1 ? $1 : NaN):2:3:4 with yerrorlines pt marker[(i - 1) % 8 + 1] ps 0.9 + 0.15 * (n_series - i) lw 1.8 lc rgb line_colour[i] title line_title[i]
    }
}
