// Package component is the parts that pages share.
//
// What it is: templ functions of one struct, each with the class of the same
// name in the stylesheet.
//
// What always holds: a component looks the same on every page, can be used by
// keyboard, and shows hostile text as text.
//
// What it is not: a place for plain elements. A part with no structure of its
// own, such as a button, is its class in the page.
package component
