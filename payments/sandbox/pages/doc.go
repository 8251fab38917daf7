// Package pages is the pages that the sandbox hosts for a customer: checkout, card
// challenge, invoice and portal.
//
// What always holds: every page says that no real payment happens; a page is a
// function of one struct, and knows neither the request nor the clock.
package pages
