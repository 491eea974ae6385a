# Heat map of a fabric's links, a panel for each layer, from the CSV that `--link-map` of msim step and msim fabric load writes:
#     gnuplot -e "links='links.csv'; picture='links.png'" plots/links.gp
# Every dot is a link, in rows of 128 in the order of their numbers; the colour is the part of its rate that it carried.
set terminal pngcairo size 1400,1000 font 'sans,11'
set output picture
set datafile separator comma
layers = 'nic_up tor_up agg_up nic_down tor_down agg_down'
titles = 'NIC~to~ToR ToR~to~aggregation aggregation~to~core ToR~to~NIC aggregation~to~ToR core~to~aggregation'
row = 128
stats links using 3 every ::1 nooutput name 'use'
set palette defined (0 '#F2F2F2', 0.25 '#9ECAE9', 0.5 '#0072B2', 0.75 '#E69F00', 1 '#D55E00')
set cbrange [0:(use_max > 0 ? use_max : 1)]
set format cb '%.2f'
set cblabel 'utilisation over the run'
unset key
unset xtics
set ytics nomirror out
set ylabel 'link / 128'
set yrange [*:*] reverse
set xrange [-1:row]
set multiplot layout 2,3
do for [i = 1:words(layers)] {
    name = word(layers, i)
    set title system("echo '".word(titles, i)."' | tr '~' ' '")
    plot links using (strcol(1) eq name ? int($2) % row : NaN):(int($2) / row):3 every ::1 with points pt 5 ps 0.35 palette
}
unset multiplot
