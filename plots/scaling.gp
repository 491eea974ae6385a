# The best plans along a sweep: above, tokens a second, beside what GPUs that lose nothing would give; below, their MFU.
summary = sprintf('best plans against %s', key)
array line_colour[n_series]
array line_title[n_series]
# What there is room for; a percent sign stands twice and is not cut in two.
whole(name) = name[strlen(name):*] eq '%' ? whole(name[1:strlen(name) - 1]) : name
cut(name, room) = strlen(name) > room ? whole(name[1:room]) : name
short(name) = strlen(name) > 20 ? cut(name, 17).'...' : name
# Keys that are too long beside each other stand below each other.
below(keys, comma) = comma ? short(keys[1:comma - 1]).",\n".below(keys[comma + 2:*], strstrt(keys[comma + 2:*], ', ')) : short(keys)
heading(keys) = strlen(keys) > 20 ? below(keys, strstrt(keys, ', ')) : keys
stats $series using (i = int($1) + 1, line_colour[i] = $2, line_title[i] = short(stringcolumn(3)), $1) nooutput
array value[n_values]
letters = 0
stats $words using (value[int($1) + 1] = stringcolumn(2), letters = letters + strlen(stringcolumn(2)) + 2, $1) nooutput
entry(i) = others eq '' ? line_title[i] : others.' '.line_title[i]
slanted = is_word && letters > 100 # they would run into each other
set xtics ()
if (is_word) {
    set xrange [-0.5:n_values - 0.5]
    do for [i = 1:n_values] { set xtics add ((!slanted ? value[i] : is_text ? cut(value[i], 84 / n_values - 1) : '') i - 1) }
} else {
    set logscale x 2
    stats $points using 1 nooutput
    set xrange [STATS_min / 1.15:STATS_max * 1.15]
    do for [i = 1:n_values] { set xtics add (value[i] real(value[i])) }
}
set ylabel 'tokens a second'
stats $points using 2 nooutput
# Less than ten thousands, millions ... are divided into tenths.
set format y (is_word && STATS_max < 10 * 1000**floor(log10(STATS_max) / 3) ? '%.1s %c' : '%.0s %c')
if (is_word) {
    set yrange [0:*]
} else {
    set logscale y
    set yrange [STATS_min / 1.3:STATS_max * 1.3]
    if (STATS_max / STATS_min < 100) { # decades alone would leave an axis with one number
        do for [decade = floor(log10(STATS_min)) - 1:floor(log10(STATS_max)) + 1] for [digit in '2 5'] {
            set ytics add (real(digit) * 10**decade)
        }
    }
}
# Words have no order along an axis: bars beside each other; values are joined.
wide = 0.8 / n_series
at(x, i) = is_word ? x + (i - (n_series + 1) / 2.0) * wide : x
if (is_word) { set boxwidth 0.9 * wide }
if (is_text) {
    set title titled(summary)
    set xlabel key
    if (is_word) {
        plot for [i = 1:n_series] $points using ($5 == i - 1 ? at($1, i) : NaN):2 with boxes title entry(i)
    } else {
        plot for [i = 1:n_series] $points using ($5 == i - 1 ? $1 : NaN):2 with linespoints title entry(i)
    }
} else {
    set multiplot
    set lmargin at screen (is_word ? 0.11 : 0.095)
    set rmargin at screen 0.80
    set tmargin at screen 0.92
    set bmargin at screen 0.46
    set label 1 titled(summary) @as_title
    set key at screen 0.815, screen 0.93 left top Left reverse
    if (others ne '') { set key title heading(others) left }
    lines = is_word ? 0 : n_series
    bars = is_word ? n_series : 0
    plot for [i = 1:bars] $points using ($5 == i - 1 ? at($1, i) : NaN):2 with boxes lc rgb line_colour[i] title line_title[i], \
         for [i = 1:lines] $points using ($5 == i - 1 ? $1 : NaN):2 with linespoints pt marker[(i - 1) % 8 + 1] ps 1.1 lw 1.8 lc rgb line_colour[i] title line_title[i], \
         for [i = 1:(is_gpus ? lines : 0)] $points using ($5 == i - 1 ? $1 : NaN):3 with lines dt (12, 6) lw 1.2 lc rgb line_colour[i] title (i == 1 ? 'linear scaling' : '')
    unset label 1
    unset logscale y
    set ytics autofreq
    set format y '%g'
    set xlabel key
    set ylabel 'MFU [%]'
    set yrange [0:*]
    set tmargin at screen 0.40
    set bmargin at screen (slanted ? 0.20 : 0.10)
    unset key
    if (slanted) {
        set xtics rotate by -25
        do for [i = 1:n_values] { set xtics add (short(value[i]) i - 1) }
    }
    plot for [i = 1:bars] $points using ($5 == i - 1 ? at($1, i) : NaN):4 with boxes lc rgb line_colour[i] notitle, \
         for [i = 1:lines] $points using ($5 == i - 1 ? $1 : NaN):4 with linespoints pt marker[(i - 1) % 8 + 1] ps 1.1 lw 1.8 lc rgb line_colour[i] notitle
    unset multiplot
}
