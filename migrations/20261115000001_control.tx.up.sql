-- The role that serves requests. It owns nothing, so row-level security binds it.
-- Roles belong to the whole cluster: another database may have made it already,
-- or may be making it at this moment.
DO $$
BEGIN
  CREATE ROLE purser_app NOLOGIN NOINHERIT;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
  NULL;
END
$$;

--bun:split

-- Whoever migrates may serve as this role. From version 16 on, who makes a role is
-- a member of it, may let others be one, and still may not take the role on.
DO $$
BEGIN
  IF NOT pg_has_role(current_user, 'purser_app',
    CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'MEMBER' ELSE 'SET' END) THEN
    EXECUTE format('GRANT purser_app TO %I', current_user);
  END IF;
END
$$;

--bun:split

GRANT USAGE ON SCHEMA public TO purser_app;

--bun:split

GRANT SELECT ON schema_migrations TO purser_app;

--bun:split

-- Who pays for the service. Times are milliseconds since 1970 in UTC, as on the wire.
CREATE TABLE organizations (
  id         uuid   NOT NULL PRIMARY KEY,
  slug       text   COLLATE "C" NOT NULL,
  name       text   NOT NULL,
  created_at bigint NOT NULL,
  CONSTRAINT organization_slug_is_unique UNIQUE (slug)
);

--bun:split

CREATE TABLE applications (
  id             uuid    NOT NULL PRIMARY KEY,
  org_id         uuid    NOT NULL,
  slug           text    COLLATE "C" NOT NULL,
  name           text    NOT NULL,
  is_live        boolean NOT NULL,
  deployment_url text,
  created_at     bigint  NOT NULL,
  CONSTRAINT application_belongs_to_an_organization FOREIGN KEY (org_id) REFERENCES organizations (id),
  CONSTRAINT application_slug_is_unique_in_its_organization UNIQUE (org_id, slug)
);

--bun:split

CREATE TABLE users (
  id         uuid   NOT NULL PRIMARY KEY,
  email      text   COLLATE "C" NOT NULL,
  name       text   NOT NULL,
  created_at bigint NOT NULL,
  CONSTRAINT email_is_unique UNIQUE (email)
);

--bun:split

CREATE TABLE members (
  org_id      uuid   NOT NULL,
  user_id     uuid   NOT NULL,
  role        text   NOT NULL,
  permissions text[] NOT NULL,
  created_at  bigint NOT NULL,
  PRIMARY KEY (org_id, user_id),
  CONSTRAINT member_belongs_to_an_organization FOREIGN KEY (org_id) REFERENCES organizations (id),
  CONSTRAINT member_is_a_user FOREIGN KEY (user_id) REFERENCES users (id)
);

--bun:split

CREATE INDEX members_by_user ON members (user_id);

--bun:split

-- Leads from a key's hash to the application that holds the key, and says nothing
-- more about it: whether the key works is written in api_keys, behind the policy.
-- Rows never change, so a node may remember them.
CREATE TABLE key_directory (
  hash   bytea NOT NULL PRIMARY KEY,
  org_id uuid  NOT NULL,
  app_id uuid  NOT NULL,
  key_id uuid  NOT NULL,
  CONSTRAINT hash_is_sha256 CHECK (length(hash) = 32)
);

--bun:split

GRANT SELECT, INSERT, UPDATE ON organizations, applications, users TO purser_app;

--bun:split

GRANT SELECT, INSERT, UPDATE, DELETE ON members TO purser_app;

--bun:split

GRANT SELECT, INSERT ON key_directory TO purser_app;
