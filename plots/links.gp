# What the links of a fabric carried: a panel for each layer and direction. Every cell is a link: across, the port of a host or switch;
# down, the host or switch that the cable goes up from, so that both directions of a cable have the same place. The colour is the
# part of its rate that it carried over the run, on one scale for all layers; titles tell mean and most. Of a dragonfly: down, the
# group; across, its local cables, and from group to group the mean of the cables between them.
array titles[6] = ['host NICs → ToR', 'ToR → aggregation', 'aggregation → core', 'ToR → host NICs', 'aggregation → ToR', 'core → aggregation']
array below[3] = ['host', 'ToR', 'aggregation switch']
array across[3] = ['NIC port', 'uplink', 'uplink']
if (dragonfly) {
    array titles[6] = ['host NICs → switch', 'inside groups, to the higher switch', 'between groups', 'switch → host NICs', 'inside groups, to the lower switch', '']
    array below[3] = ['host', 'group', 'from group']
    array across[3] = ['NIC port', 'local cable', 'to group']
}
array links[6] = [links1, links2, links3, links4, links5, links6]
array ports[6] = [ports1, ports2, ports3, ports4, ports5, ports6]
array units[6] = [units1, units2, units3, units4, units5, units6]
array means[6] = [mean1, mean2, mean3, mean4, mean5, mean6]
array tops[6] = [most1, most2, most3, most4, most5, most6]
stats $layers using 3 nooutput name 'use'
most = use_max > 0 ? use_max : 1
if (is_text) {
    unset key
    unset xtics
    set tmargin 3
    set bmargin 1
    set lmargin 20
    set border 2
    set yrange [n_rows:-1]
    set ytics scale 0
    set xrange [0:most * 1.14 + 1e-9]
    set title titled('use of links over the run')."\n= mean of a layer   - to its busiest link"
    cells(v) = v / most * (text_width - 66)
    strip(mean, top) = repeated('=', cells(mean)).repeated('-', cells(top) - cells(mean)).sprintf(' mean %.2f %%  most %.2f %%', mean, top)
    plot $layers using (0):1:(strip($2, $3)) with labels left offset 1,0 notitle, \
         $layers using (NaN):1:ytic(sprintf('%s (%d)', stringcolumn(5), $4)) with points notitle
} else {
set palette defined (0 '#F4F4F4', 0.001 '#FFF7BC', 0.25 '#FEC44F', 0.5 '#EC7014', 0.75 '#CC4C02', 1 '#662506')
set cbrange [0:most]
unset key
unset grid
set tics font small_font
set border 15 lc rgb '#888888'
set label 1 titled('use of links over the run') at screen 0.5,0.985 center font title_font textcolor rgb ink
# As many columns as there are layers with links: a fabric of two has no third.
array place[3] = [place1, place2, place3]
column_width = 0.879 / n_columns
set multiplot
do for [i = 1:6] {
    column = (i - 1) % 3
    line = (i - 1) / 3
    set lmargin at screen 0.07 + place[column + 1] * column_width
    set rmargin at screen 0.07 + (place[column + 1] + 1) * column_width - 0.063
    set tmargin at screen 0.895 - line * 0.47
    set bmargin at screen 0.895 - line * 0.47 - 0.35
    if (i > 1) { unset label 1 }
    if (links[i] > 0) {
        set title sprintf("%s\n%d links, mean %.2f %%, most %.2f %%", titles[i], links[i], means[i], tops[i]) font remark_font offset 0,-0.4
        set xlabel across[column + 1] font remark_font offset 0,0.5
        set ylabel below[column + 1] font remark_font offset 1.2,0
        n = ports[i]
        m = units[i]
        set xrange [-0.5:n - 0.5]
        set yrange [m - 0.5:-0.5]
        if (i == 1) { set colorbox user origin screen 0.915,0.075 size screen 0.014,0.82 } else { unset colorbox }
        set cblabel 'utilisation over the run [%]' font remark_font offset 0.3,0
        if (n < 10) { set xtics 1 } else { set xtics autofreq }
        if (m < 10) { set ytics 1 } else { set ytics autofreq }
        if (n > 1 && m > 1) {
            eval sprintf("plot $map%d using 1:2:3 with image", i)
        } else {
            eval sprintf("plot $map%d using 1:2:(0.5):(0.5):3 with boxxyerror fillstyle solid noborder fillcolor palette", i)
        }
    }
}
unset multiplot
}
