// Package mail writes and sends the mails of the installation: invitations, links for
// forgotten passwords, security notices, and notifications that members want.
//
//	Seal     a letter becomes a row of the outbox, written in the transaction that it reports on
//	MailNotifications  a periodic task that goes through each application's feed, and past a notification
//	         in the transaction that queues its mails: each member gets one, once
//	SendDue  a periodic task claims due rows and hands them to the SMTP server
//
// What always holds: a mail is sent if and only if its transaction commits, at least
// once, with the same Message-ID each time; a request never waits for the SMTP server;
// addresses and texts are sealed at rest and appear in no log. The link for a forgotten
// password does not exist before its mail is sent, so no table has it.
//
// What it is not: a newsletter. Mails go one by one, to people with an account or an
// invitation, and are dropped when they are of no use any more.
package mail
