-- The length and SHA-256 of the whole input that an approval is about; NULL for older requests.
ALTER TABLE approval ADD COLUMN input_bytes INTEGER;
ALTER TABLE approval ADD COLUMN input_sha256 TEXT;
