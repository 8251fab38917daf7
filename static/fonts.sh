#!/bin/sh
# Writes inter.woff2 and jetbrains-mono.woff2 from the published fonts:
#
#   static/fonts.sh InterVariable.woff2 'JetBrainsMono[wght].ttf'
#
# The first is variable/InterVariable.woff2 of the npm package inter-ui 4.1.1, the
# second is fonts/variable of github.com/JetBrains/JetBrainsMono at v2.304. Both are
# under the SIL Open Font License, which is beside them. It needs Debian's packages
# python3-fonttools and python3-brotli; the build does not need this script.
set -eu

# Latin, Latin-1, Latin Extended-A, the letters of Romanian and Welsh, combining
# accents, punctuation, currencies, arrows and the signs of formulas.
characters='U+0020-007E,U+00A0-017F,U+018F,U+0192,U+0218-021B,U+0237,U+0259,U+02C6,U+02C7,U+02C9,U+02D8-02DD,
U+0300-0304,U+0306-0308,U+030A-030C,U+0326-0328,U+03B5,U+03BC,U+1E80-1E85,U+1E9E,U+1EF2,U+1EF3,
U+2002,U+2003,U+2007,U+2009-200B,U+2010-2015,U+2018-201E,U+2020-2022,U+2026,U+202F,U+2030,U+2032,U+2033,U+2039,U+203A,
U+2044,U+2070,U+2074-2079,U+2080-2089,U+20A0-20BF,U+2116,U+2122,U+2190-2195,U+2212,U+2215,U+2219,U+221A,U+221E,
U+2248,U+2260,U+2264,U+2265,U+2308-230B,U+2500,U+25CF,U+2713,U+2717,U+FFFD'

# Without calt, which would show "->" as an arrow and "2x4" as a product: pages show
# identities and keys exactly as they are.
features='kern,mark,mkmk,ccmp,locl,tnum,case'

# write NAME SOURCE AXIS... keeps the weights that app.css uses.
write() {
	target=$(dirname "$0")/$1 source=$2
	shift 2
	/usr/bin/python3 -m fontTools.varLib.instancer --quiet "$source" "$@" --output "$target.ttf"
	/usr/bin/python3 -m fontTools.subset "$target.ttf" --unicodes="$(printf %s "$characters" | tr -d '\n')" \
		--layout-features="$features" --name-IDs=0,1,2,3,4,5,6,13,14 --no-hinting --flavor=woff2 --output-file="$target.woff2"
	rm "$target.ttf"
}

write inter "$1" opsz=14 wght=400:700
write jetbrains-mono "$2" wght=400:700
