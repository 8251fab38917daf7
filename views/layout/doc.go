// Package layout is what surrounds a page: the document and its shells.
//
// What it is: templ functions of one struct, with the page as their children.
//
// What always holds: a document names its language and title, works in light
// and in dark, lets a keyboard skip to the content, and carries no inline
// script or style, which the site's content security policy would block.
//
// What it is not: a page. It knows which pages there are and who may open them,
// for the navigation; it checks no permission.
package layout
