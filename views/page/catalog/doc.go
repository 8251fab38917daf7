// Package catalog is the pages of an application's credits, features and plans. Package
// page states what holds for all pages.
package catalog
