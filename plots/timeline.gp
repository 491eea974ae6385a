# Lanes of a pipeline's stages over one step. Data: see figure_data.h.
both = exists('measured_time')
lasts = sprintf(windowed ? 'a part of one step of %.4g ' : 'one step, %.4g ', step_time).time_unit
if (both) {
    lasts = sprintf('one step, %.4g '.time_unit.' predicted, %.4g '.time_unit.' measured', predicted_time, measured_time)
}
stats $legend using 1 nooutput
n_legend = STATS_records
array legend_colour[n_legend]
array legend_text[n_legend]
array legend_letter[n_legend]
stats $legend using (legend_colour[int($0) + 1] = $1, legend_text[int($0) + 1] = stringcolumn(2), legend_letter[int($0) + 1] = stringcolumn(3), $1) nooutput
set label 1 titled(lasts) @as_title
remark = (n_labels > 0 ? 'numbers are micro-batches' : '').(n_labels > 0 && n_chunks > 1 ? '; ' : '').(n_chunks > 1 ? 'later model chunks are lighter' : '')
if (remark ne '') { set label 2 remark @as_remark }
set xlabel 'time ['.time_unit.']'
set xrange [start_time:end_time]
set yrange [n_lanes - 0.4:-0.6]
set border 1
set ytics scale 0
set grid noytics
unset key
if (is_text) {
    # Each lane on a line of its own.
    unset label 1
    unset label 2
    set tmargin 3
    set bmargin 4
    if (both) { set lmargin 21 } else { set lmargin 10 }
    set rmargin 2
    set yrange [n_lanes:-1]
    legend = ''
    do for [i = 1:n_legend] { legend = legend.legend_letter[i].' '.legend_text[i].'   ' }
    set title titled(lasts)."\n".legend
    plot $strips using (start_time):1:2 with labels left offset 1,0 notitle, $lanes using (NaN):1:ytic(2) notitle
} else {
    set key outside bottom center horizontal samplen 1.2 width 2
    if (both) { set lmargin 19 } else { set lmargin 11 }
    if (both) {
        set arrow 1 from predicted_time, graph 0 to predicted_time, graph 1 nohead dt 2 lc rgb muted back
        set bmargin 8
        set key maxrows 2
        set arrow 2 from measured_time, graph 0 to measured_time, graph 1 nohead dt 3 lc rgb muted back
    }
    if (!both) { set bmargin 6.5 + (n_legend > 4 ? 1.4 * ceil((n_legend - 4) / 2.0) : 0) } # its legend has rows of two
    # A white edge tells neighbours apart while they are few.
    if (n_bars < 600) { set style fill solid 1.0 border rgb '#FFFFFF' } else { set style fill solid 1.0 noborder }
    set rmargin 3
    plot $bars using (($3 + $4) / 2):(($1 + $2) / 2):3:4:1:2:5 with boxxyerror fc rgb variable lw 0.5 notitle, \
         $lanes using (NaN):1:ytic(2) with points notitle, \
         $labels using 1:2:3 with labels font small_font textcolor rgb '#FFFFFF' notitle, \
         for [i = 1:n_legend] NaN with boxes fs solid noborder fc rgb legend_colour[i] title legend_text[i]
}
