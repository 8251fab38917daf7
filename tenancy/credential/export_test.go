package credential

// Breached is the embedded list.
var Breached = breached
