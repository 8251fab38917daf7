// Package page is the pages that people see: one package for each area of the
// dashboard below it, one file a page or page group. Here are the pages of no area:
// errors, and the gallery of components.
//
// What it is: a struct that holds all that a page shows, and a templ function
// of that struct.
//
// What always holds: the same struct gives the same bytes; every value is
// escaped; every link leads to something that this server answers.
//
// What it is not: a handler. A page fetches nothing, decides nothing and knows
// neither the request nor the clock.
package page
