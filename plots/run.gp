# A run over time: above, goodput and MFU; below, where the rest of the time goes.
array use_title[n_uses > 0 ? n_uses : 1]
array use_colour[n_uses > 0 ? n_uses : 1]
if (n_uses > 0) {
    stats $uses using (use_colour[int($0) + 1] = $1, use_title[int($0) + 1] = stringcolumn(2), $1) nooutput
}
set xrange [0:horizon]
set yrange [0:100]
summary = sprintf('goodput %.2f %%, ETTR %.2f %%, %d interruptions', goodput, ettr, interruptions)
if (has_mfu) { summary = summary.sprintf(', MFU %.1f %%', mfu) }
set ylabel 'share [%]'
if (is_text) {
    unset label 1
    set title titled(summary)
    set xlabel 'time [days]'
    plot $shares using 1:2 with steps title 'goodput [%]', \
         $shares using 1:3 with steps title (has_mfu ? 'MFU [%]' : '')
} else {
    set multiplot
    set lmargin at screen 0.07
    set rmargin at screen 0.84
    set tmargin at screen 0.92
    set bmargin at screen (n_uses > 0 ? 0.50 : 0.10)
    set label 1 titled(summary) @as_title
    if (n_uses > 0) { set format x '' } else { set xlabel 'time [days]' }
    set key at screen 0.855, screen 0.93 left top Left reverse
    plot $shares using 1:2 with steps lw 1.8 lc rgb '#0072B2' title 'goodput', \
         $shares using 1:3 with steps lw 1.8 lc rgb '#D55E00' title (has_mfu ? 'MFU' : ''), \
         $incidents using 1:(0):(0):(3) with vectors nohead lw 0.6 lc rgb '#222222' notitle, \
         NaN with points pt '|' font small_font tc rgb '#222222' title 'interruption'
    if (n_uses > 0) {
        unset label 1
        set format x '%g'
        set tmargin at screen 0.44
        set bmargin at screen 0.10
        set xlabel 'time [days]'
        set ylabel 'rest of the time [%]'
        set yrange [0:*]
        set key at screen 0.855, screen 0.45 left top Left reverse noinvert
        # Areas from the top of the stack down, so that each covers the part above the next one.
        plot for [i = n_uses:1:-1] $shares using 1:(column(3 + i)) with fillsteps fs solid noborder fc rgb use_colour[i] title use_title[i]
    }
    unset multiplot
}
