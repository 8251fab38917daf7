-- Until when a password that the command line gave out works. It only lets its owner
-- choose another. NULL for a password that its owner chose.
ALTER TABLE passwords ADD COLUMN temporary_until bigint;

--bun:split

-- The name under which the command line or the setup made an organization. The command
-- line finds it by that name, and no other organization by any name: members may create
-- and rename theirs as they like.
ALTER TABLE organizations
  ADD COLUMN command_name    text,
  ADD COLUMN requires_factor boolean NOT NULL DEFAULT false; -- of members, before they may act

--bun:split

-- The command line or the setup made an organization that has no members, or whose audit
-- log begins with the command line, or that is the first of the first account. Members
-- made all others: their names stay unknown to the command line. Of several with one name
-- the first one without members has it, else the first.
UPDATE organizations o SET command_name = o.name
FROM (
  SELECT DISTINCT ON (c.name) c.id
  FROM organizations c LEFT JOIN audit_entries e ON e.org_id = c.id AND e.number = 1
  WHERE NOT EXISTS (SELECT FROM members m WHERE m.org_id = c.id)
     OR (e.user_id IS NULL AND e.actor = 'command line')
     OR c.id = (
       SELECT s.org_id FROM audit_entries s
       WHERE s.number = 1 AND s.action = 'organization.create'
         AND s.user_id = (SELECT u.id FROM users u ORDER BY u.created_at, u.id LIMIT 1)
       ORDER BY s.at, s.org_id LIMIT 1)
  ORDER BY c.name, EXISTS (SELECT FROM members m WHERE m.org_id = c.id), c.id
) made
WHERE o.id = made.id;

--bun:split

ALTER TABLE organizations ADD CONSTRAINT organization_has_its_own_command_name UNIQUE (command_name);
