# Where time goes. One result: a bar for each class. Several: stacked columns with one legend.
title_text = titled('where the time goes'.(differs eq '' ? '' : '; not the same '.differs))
set label 1 title_text @as_title
array class_title[n_classes]
array class_colour[n_classes]
stats $bars using (class_title[int($2) + 1] = stringcolumn(7), class_colour[int($2) + 1] = $3, $2) nooutput
stats $bars using 5 nooutput
longest = STATS_max
stats $names using 3 nooutput
tallest = STATS_max
array class_letter[n_classes]
do for [i = 1:n_classes] { class_letter[i] = substr('abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ', i, i) }
if (is_text) {
    # Bars are strings: one line a class, or one line a result with a letter for each class.
    unset key
    unset label 1
    set tmargin 3
    set bmargin 1
    set border 2
    set ytics scale 0
    set xtics scale 0
    set xrange [0:1]
    unset xtics
    set lmargin 18
    if (n_columns == 1) {
        set title title_text
        set yrange [n_classes:-1]
        strip(v, share) = repeated('=', v / longest * (text_width - 48)).sprintf(' %#.3g %s  %.1f %%', v, time_unit, share)
        plot $bars using (0):2:(strip($5, $6)) with labels left offset 1,0 notitle, $bars using (NaN):2:ytic(7) with points notitle
    } else {
        legend = ''
        do for [i = 1:n_classes] { legend = legend.(n_classes > 7 && i == n_classes / 2 + 1 ? "\n" : '').class_letter[i].' '.class_title[i].'  ' }
        # One name that does not fit takes all of them away: the longest decides, and none takes more than half. What tells
        # names apart stands at either end.
        room = 25
        stats $names using (room = strlen(stringcolumn(2)) > room ? strlen(stringcolumn(2)) : room, $1) nooutput
        if (room > text_width / 2) { room = text_width / 2 }
        half = (room - 3) / 2
        fitted(name) = strlen(name) > room ? name[1:room - 3 - half].'...'.name[strlen(name) - half + 1:*] : name
        set lmargin room + 3
        if (n_classes > 7) { set tmargin 4 }
        set title title_text."\n".legend
        set yrange [n_columns:-1]
        array strips[n_columns]
        do for [i = 1:n_columns] { strips[i] = '' }
        letters(row, class, v) = (strips[row + 1] = strips[row + 1].repeated(class_letter[class + 1], v / tallest * (text_width - room - 17)), v)
        stats $bars using (letters(int($1), int($2), $5)) nooutput
        plot $names using (0):1:(strips[int($1) + 1].sprintf(' %.4g %s', $3, time_unit)) with labels left offset 1,0 notitle, \
             $names using (NaN):1:ytic(fitted(stringcolumn(2))) with points notitle
    }
} else { if (n_columns == 1) {
    unset key
    set yrange [n_classes - 0.4:-0.6]
    set ytics scale 0
    set grid noytics
    set border 2
    set xrange [0:longest * 1.18]
    set xlabel 'time ['.time_unit.']'
    set lmargin 15
    label(v, share) = sprintf('%#.3g %s  %.1f %%', v, time_unit, share)
    plot $bars using (0):2:(0):5:($2 - 0.34):($2 + 0.34):3 with boxxyerror fs solid noborder fc rgb variable notitle, \
         $bars using 5:2:(label($5, $6)) with labels left offset 1,0 textcolor rgb ink notitle, \
         $bars using (NaN):2:ytic(7) with points notitle
} else {
    set xrange [-0.6:n_columns - 0.4]
    set ylabel 'time ['.time_unit.']'
    set xtics scale 0
    set grid noxtics
    set border 2
    set yrange [0:tallest * 1.08]
    set key invert
    set rmargin 24
    # Long names lean.
    if (n_columns > 5) { set xtics rotate by -25; set bmargin 6 }
    total(v) = sprintf('%#.4g', v)
    plot for [i = 1:n_classes] $bars using ($2 == i - 1 && $5 > 0 ? $1 : NaN):($4 + $5 / 2):($1 - 0.32):($1 + 0.32):4:($4 + $5) with boxxyerror \
             fs solid noborder fc rgb class_colour[i] title class_title[i], \
         $names using 1:3:(total($3)) with labels offset 0,0.8 textcolor rgb ink notitle, \
         $names using 1:(NaN):xtic(2) with points notitle
}}
