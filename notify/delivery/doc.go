// Package delivery sends the notifications of applications to their webhook endpoints.
//
// What it is: Dispatcher. It numbers committed notifications and sends them as jobs on the
// queue of package jobs, wakes readers that wait for the feed, and creates endpoints with
// their secrets. The node that commits a notification numbers it at once; a periodic task
// numbers what a node that died has left.
//
// What always holds: numbers, deliveries and attempts are rows, so a node that dies loses
// none of them; a delivery whose outcome is unknown is sent again; a webhook reaches public
// addresses only, and the networks that the operator opened.
//
// What it is not: the rules of schedules and signatures, which are package notify's, or
// storage, which is store/notifications'.
package delivery
