# Mean absolute error of each table (bars), with median and 90th percentile, and the bias.
set label 1 titled(sprintf('error of predictions: mean %.1f %%, mean over tables %.1f %%', mape, macro_mape)) @as_title
stats $errors using 4 nooutput
widest = STATS_max
set yrange [n_rows - 0.4:-0.6]
set ytics scale 0
set grid noytics
set border 1
set xrange [0:widest * 1.14 + 1]
set xlabel 'absolute error [%]'
set lmargin 26
named(name, n) = sprintf('%s (%d)', name, n)
bias(b) = sprintf('bias %+.1f %%', b)
set key outside bottom center horizontal samplen 1.5 width -4
set bmargin 5.5
if (is_text) {
    unset key
    unset label 1
    unset xtics
    set tmargin 3
    set bmargin 1
    set border 2
    set yrange [n_rows:-1]
    set title titled(sprintf('error of predictions: mean %.1f %%, mean over tables %.1f %%', mape, macro_mape))."\n= mean   - to the 90th percentile"
    cells(v) = v / widest * (text_width - 66)
    strip(mean, median, p90, b) = repeated('=', cells(mean)).repeated('-', cells(p90) - cells(mean)).sprintf(' mean %.1f %%  p90 %.1f  bias %+.1f', mean, p90, b)
    unset xlabel
    plot $errors using (0):1:(strip($2, $3, $4, $5)) with labels left offset 1,0 notitle, \
         $errors using (NaN):1:ytic(named(stringcolumn(7), $6)) with points notitle
} else {
    plot $errors using (0):1:(0):2:($1 - 0.3):($1 + 0.3) with boxxyerror fs solid noborder fc rgb '#7FB8D8' title 'mean', \
         $errors using 3:1:3:4 with xerrorbars pt 7 ps 0.9 lw 1.4 lc rgb '#004D7A' title 'median, to the 90th percentile', \
         $errors using 4:1:(bias($5)) with labels left offset 1.2,0 textcolor rgb muted notitle, \
         $errors using (NaN):1:ytic(named(stringcolumn(7), $6)) with points notitle
}
