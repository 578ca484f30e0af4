INSERT INTO signals (job, name, payload, fingerprint, sent_at, is_used)
VALUES (:job, :name, :payload, :fingerprint, :sent_at, :is_used)
