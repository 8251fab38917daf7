curl '{{.Address}}/v1/check' -H "Authorization: Bearer $PURSER_KEY" \
  --json '{"identity": "{{.Identity}}", "feature": "{{.Feature}}"}'

# The id is yours. Send the same one again and it is charged once.
curl '{{.Address}}/v1/events' -H "Authorization: Bearer $PURSER_KEY" \
  --json '{"id": "first-event-{{.Feature}}", "identity": "{{.Identity}}", "feature": "{{.Feature}}"}'
