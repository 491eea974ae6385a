# The look of every figure: quiet axes, a light grid behind the data, legends outside.
set border 3 lc rgb '#444444' lw 0.9
set tics nomirror out scale 0.6 textcolor rgb '#333333'
set grid back lt 1 lc rgb '#DDDDDD' lw 0.7 dt solid
set style fill solid 1.0 noborder
set key outside right top Left reverse samplen 1.6 spacing 1.25 textcolor rgb '#333333'
set boxwidth 0.7
title_font = sprintf(',%d', font_size + 2)
remark_font = sprintf(',%d', font_size - 1)
small_font = sprintf(',%d', font_size - 4)
ink = '#222222'
muted = '#666666'
# Line markers differ besides colour: filled and open circle, square, triangle, diamond.
array marker[8] = [7, 5, 9, 13, 11, 6, 4, 8]
set tmargin 4
# Where titles stand, and remarks beside them, whatever the height of the graph: set label 1 titled('...') @as_title
as_title = "at graph 0, graph 1 offset 0,1.2 left font title_font textcolor rgb ink"
as_remark = "at graph 1, graph 1 offset 0,1.2 right font remark_font textcolor rgb muted"
# What a figure is about, before what it shows: 'gpt-175b: one step'.
titled(text) = figure_title eq '' ? text : figure_title.': '.text
repeated(letter, n) = n < 0.5 ? '' : letter.repeated(letter, n - 1)
if (is_text) {
    set key outside bottom center horizontal nobox samplen 1
    unset grid
}
