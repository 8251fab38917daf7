-- The properties of events go when their wallet is erased; the events stay.
GRANT DELETE ON event_properties TO purser_app;
