-- The answer of a receiver may repeat the identity of a customer who is erased.
GRANT UPDATE ON delivery_attempts TO purser_app;
