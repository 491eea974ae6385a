# Heat map of a fabric's links, a panel for each layer and direction, from the CSV that `--link-map` of msim step and msim fabric load
# writes:
#     gnuplot -e "links='links.csv'; picture='links.png'" plots/links.gp
# Every cell is a link: across, the port of a host or switch; down, the host or switch that the cable goes up from, so that both
# directions of a cable have the same place. The colour is the part of its rate that it carried over the run, on one scale for all
# layers; titles tell mean and most.
set terminal pngcairo size 1500,1100 font 'sans,11' background '#FFFFFF'
set output picture
set datafile separator comma
set encoding utf8

layers = 'nic_up tor_up agg_up nic_down tor_down agg_down'
titles = 'host~NICs~→~ToR ToR~→~aggregation aggregation~→~core ToR~→~host~NICs aggregation~→~ToR core~→~aggregation'
below = 'host ToR aggregation~switch host ToR aggregation~switch'
across = 'NIC~port uplink uplink NIC~port uplink uplink'
plain(text) = system("printf '%s' '".text."' | tr '~' ' '")

stats links using 3 every ::1 nooutput name 'use'
most = use_max > 0 ? use_max : 1

# Of each layer: links, mean and most. And the ports of a host and of a switch: the largest numbers in the names of the links going
# up, "host 3 nic 5 port 0 -> ..." and "tor 17 port 31 -> ...".
of(i) = sprintf("< grep '^%s,' '%s'", word(layers, i), links)
array records[6]
array mean[6]
array largest[6]
array ports[6]
do for [i = 1:6] {
    records[i] = int(system(sprintf("grep -c '^%s,' '%s' || true", word(layers, i), links)))
    if (records[i] > 0) {
        stats of(i) using 3 nooutput name 'layer'
        mean[i] = layer_mean
        largest[i] = layer_max
        up = (i - 1) % 3 + 1
        stats of(up) using (int(word(strcol(6), 4))) nooutput name 'number'
        stats of(up) using (up == 1 ? int(word(strcol(6), 6)) : 0) nooutput name 'of_nic'
        ports[i] = (int(number_max) + 1) * (int(of_nic_max) + 1)
    }
}

set palette defined (0 '#F4F4F4', 0.001 '#FFF7BC', 0.25 '#FEC44F', 0.5 '#EC7014', 0.75 '#CC4C02', 1 '#662506')
set cbrange [0:100 * most]
unset key
set tics out nomirror scale 0.5 font 'sans,9'
set border lc '#888888'

set multiplot
do for [i = 1:6] {
    column = (i - 1) % 3
    line = (i - 1) / 3
    set lmargin at screen 0.055 + column * 0.3
    set rmargin at screen 0.055 + column * 0.3 + 0.25
    set tmargin at screen 0.945 - line * 0.485
    set bmargin at screen 0.945 - line * 0.485 - 0.39
    if (records[i] > 0) {
        set title sprintf("%s\n%d links, mean %.2f %%, most %.1f %%", plain(word(titles, i)), records[i], 100 * mean[i], 100 * largest[i]) \
            font 'sans,11' offset 0,-0.3
        set xlabel plain(word(across, i)) offset 0,0.6
        set ylabel plain(word(below, i)) offset 1.2,0
        set xrange [-0.5:ports[i] - 0.5]
        set yrange [records[i] / ports[i] - 0.5:-0.5]
        if (i == 1) { set colorbox user origin screen 0.935,0.07 size screen 0.014,0.86 } else { unset colorbox }
        set cblabel 'utilisation over the run [%]' offset 0.5,0
        n = ports[i]
        if (n < 10) { set xtics 1 } else { set xtics autofreq }
        if (records[i] / n < 10) { set ytics 1 } else { set ytics autofreq }
        if (n > 1 && records[i] > n) {
            plot of(i) using (int($2) % n):(int($2) / n):(100 * $3) with image
        } else {
            plot of(i) using (int($2) % n):(int($2) / n):(0.5):(0.5):(100 * $3) with boxxyerror fillstyle solid noborder fillcolor palette
        }
    }
}
unset multiplot
