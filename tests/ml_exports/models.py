"""The models: (name, function that gives an ONNX model, features that are fed)."""
import numpy as np
import onnxmltools
from onnx import helper
from onnxmltools.convert.common.data_types import FloatTensorType as MlFloat
from skl2onnx import to_onnx, update_registered_converter
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, Int64TensorType
from sklearn import (cluster, compose, decomposition, discriminant_analysis, ensemble, feature_selection, gaussian_process,
                     impute, isotonic, kernel_approximation, linear_model, mixture, multiclass, multioutput, naive_bayes,
                     neighbors, neural_network, pipeline, preprocessing, svm, tree)

make_attribute = helper.make_attribute


def with_integers(key, value, *more, **named):
    """skl2onnx writes booleans into a list of integers, which newer packages refuse."""
    if isinstance(value, (list, np.ndarray)):
        value = [int(entry) if isinstance(entry, (bool, np.bool_)) else entry for entry in value]
    return make_attribute(key, value, *more, **named)


helper.make_attribute = with_integers

ROWS, FEATURES = 300, 6
random = np.random.default_rng(1)
X = random.normal(size=(ROWS, FEATURES)).astype(np.float32)
signal = X[:, 0] - 2 * X[:, 1] * X[:, 2] + np.sin(3 * X[:, 3])
y_real = (signal + 0.1 * random.normal(size=ROWS)).astype(np.float32)
y_two = (signal > 0).astype(np.int64)
y_three = np.digitize(signal, [-1, 1]).astype(np.int64)
y_odd = np.array([-5, 7, 40])[y_three]
y_names = np.array(["low", "middle", "high"])[y_three]
y_yes = np.array(["no", "yes"])[y_two]
y_many = np.stack([y_real, -2 * y_real + X[:, 4]], 1)
X_missing = np.where(random.random(X.shape) < 0.15, np.nan, X).astype(np.float32)
X_integers = random.integers(0, 6, size=X.shape).astype(np.int64)
y_integers = (X_integers[:, 0] + 2 * X_integers[:, 1] > 7).astype(np.int64)
X_positive = np.abs(X)
X_category = X.copy()
X_category[:, 0] = X_integers[:, 0]
X_category[:, 1] = X_integers[:, 1]
X_wide = X.astype(np.float64)


def exported(estimator, data, labels=None, kind=FloatTensorType, options=None, opset=None):
    if labels is None:
        estimator.fit(data)
    else:
        estimator.fit(data, labels)
    initial = [("x", kind([None, data.shape[1]]))]
    return to_onnx(estimator, initial_types=initial, options=options, target_opset=opset or {"": 18, "ai.onnx.ml": 3})


def plain(estimator):
    """Options that leave out ZipMap."""
    return {id(estimator): {"zipmap": False}}


def sklearn_models():
    def add(name, estimator, data=X, labels=None, kind=FloatTensorType, zipmap=False, **more):
        def export():
            options = None if zipmap else more.get("options", {"zipmap": False} if more.get("classifier") else None)
            return exported(estimator, data, labels, kind, options, more.get("opset"))
        return name, export, data

    def classifier(name, estimator, labels=y_three, data=X, **more):
        return add(name, estimator, data, labels, classifier=True, **more)

    forest = ensemble.RandomForestClassifier
    models = [
        classifier("decision tree", tree.DecisionTreeClassifier(max_depth=5)),
        classifier("decision tree, deep", tree.DecisionTreeClassifier()),
        classifier("decision tree, stump", tree.DecisionTreeClassifier(max_depth=1), y_two),
        classifier("decision tree, opset 11", tree.DecisionTreeClassifier(max_depth=5), opset={"": 11, "ai.onnx.ml": 1}),
        classifier("decision tree, f64", tree.DecisionTreeClassifier(max_depth=5), data=X_wide, kind=DoubleTensorType),
        classifier("decision tree, i64", tree.DecisionTreeClassifier(max_depth=5), y_integers, X_integers, kind=Int64TensorType),
        classifier("random forest", forest(30, max_depth=8, random_state=0)),
        classifier("random forest, two classes", forest(30, random_state=0), y_two),
        classifier("random forest, odd labels", forest(20, random_state=0), y_odd),
        classifier("random forest, names", forest(20, random_state=0), y_names),
        add("random forest, names, ZipMap", forest(20, random_state=0), X, y_names, zipmap=True),
        add("random forest, ZipMap", forest(20, random_state=0), X, y_two, zipmap=True),
        classifier("extra trees", ensemble.ExtraTreesClassifier(20, random_state=0)),
        classifier("gradient boosting", ensemble.GradientBoostingClassifier(n_estimators=30)),
        classifier("gradient boosting, two classes", ensemble.GradientBoostingClassifier(n_estimators=30), y_two),
        classifier("gradient boosting, two names", ensemble.GradientBoostingClassifier(n_estimators=30), y_yes),
        classifier("hist gradient boosting", ensemble.HistGradientBoostingClassifier(max_iter=20)),
        classifier("hist gradient boosting, two classes", ensemble.HistGradientBoostingClassifier(max_iter=20), y_two),
        classifier("hist gradient boosting, missing", ensemble.HistGradientBoostingClassifier(max_iter=20), y_two, X_missing),
        classifier("ada boost", ensemble.AdaBoostClassifier(n_estimators=10)),
        classifier("bagging", ensemble.BaggingClassifier(tree.DecisionTreeClassifier(max_depth=4), 5)),
        classifier("voting", ensemble.VotingClassifier([("a", linear_model.LogisticRegression()), ("b", tree.DecisionTreeClassifier(max_depth=4))], voting="soft", flatten_transform=False)),
        classifier("stacking", ensemble.StackingClassifier([("a", linear_model.LogisticRegression()), ("b", forest(5, max_depth=4))])),
        add("isolation forest", ensemble.IsolationForest(n_estimators=20, random_state=0)),
        classifier("logistic regression", linear_model.LogisticRegression()),
        classifier("logistic regression, two classes", linear_model.LogisticRegression(), y_two),
        classifier("logistic regression, two names", linear_model.LogisticRegression(), y_yes),
        classifier("logistic regression, i64", linear_model.LogisticRegression(), y_integers, X_integers, kind=Int64TensorType),
        classifier("logistic regression, f64", linear_model.LogisticRegression(), data=X_wide, kind=DoubleTensorType),
        classifier("one against the rest", multiclass.OneVsRestClassifier(linear_model.LogisticRegression())),
        classifier("SGD, log loss", linear_model.SGDClassifier(loss="log_loss", random_state=0)),
        add("perceptron", linear_model.Perceptron(), X, y_three, classifier=True, options={"raw_scores": True, "zipmap": False}),
        add("ridge classifier", linear_model.RidgeClassifier(), X, y_three, classifier=True),
        add("linear SVC", svm.LinearSVC(), X, y_three),
        add("linear SVC, two classes", svm.LinearSVC(), X, y_two),
        classifier("linear discriminant", discriminant_analysis.LinearDiscriminantAnalysis()),
        classifier("quadratic discriminant", discriminant_analysis.QuadraticDiscriminantAnalysis()),
        classifier("naive Bayes, Gauss", naive_bayes.GaussianNB()),
        classifier("naive Bayes, names", naive_bayes.GaussianNB(), y_names),
        classifier("naive Bayes, Bernoulli", naive_bayes.BernoulliNB()),
        classifier("naive Bayes, multinomial", naive_bayes.MultinomialNB(), data=X_positive),
        classifier("nearest neighbors", neighbors.KNeighborsClassifier(3)),
        add("nearest neighbors, real", neighbors.KNeighborsRegressor(3), X, y_real),
        classifier("MLP", neural_network.MLPClassifier(hidden_layer_sizes=(16,), max_iter=50)),
        classifier("MLP, two classes", neural_network.MLPClassifier(hidden_layer_sizes=(16,), max_iter=50), y_two),
        classifier("MLP, names", neural_network.MLPClassifier(hidden_layer_sizes=(16,), max_iter=50), y_names),
        add("MLP, real", neural_network.MLPRegressor(hidden_layer_sizes=(16,), max_iter=50), X, y_real),
        add("random forest, real", ensemble.RandomForestRegressor(20, max_depth=8), X, y_real),
        add("random forest, two targets", ensemble.RandomForestRegressor(20, max_depth=8), X, y_many),
        add("random forest, real, f64", ensemble.RandomForestRegressor(20, max_depth=8), X_wide, y_real, DoubleTensorType),
        add("decision tree, real", tree.DecisionTreeRegressor(), X, y_real),
        add("gradient boosting, real", ensemble.GradientBoostingRegressor(n_estimators=30), X, y_real),
        add("hist gradient boosting, real", ensemble.HistGradientBoostingRegressor(max_iter=20), X, y_real),
        add("hist gradient boosting, real, missing", ensemble.HistGradientBoostingRegressor(max_iter=20), X_missing, y_real),
        add("ada boost, real", ensemble.AdaBoostRegressor(n_estimators=5), X, y_real),
        add("linear regression", linear_model.LinearRegression(), X, y_real),
        add("linear regression, two targets", linear_model.LinearRegression(), X, y_many),
        add("linear regression, i64", linear_model.LinearRegression(), X_integers, y_real, Int64TensorType),
        add("ridge", linear_model.Ridge(), X, y_real),
        add("lasso", linear_model.Lasso(alpha=0.01), X, y_real),
        add("elastic net", linear_model.ElasticNet(alpha=0.01), X, y_real),
        add("huber", linear_model.HuberRegressor(), X, y_real),
        add("bayesian ridge", linear_model.BayesianRidge(), X, y_real),
        add("poisson", linear_model.PoissonRegressor(), X, X_positive[:, 0]),
        add("linear SVR", svm.LinearSVR(), X, y_real),
        add("one-class SVM", svm.OneClassSVM()),
        add("gaussian process", gaussian_process.GaussianProcessRegressor(), X[:50], y_real[:50]),
        add("k-means", cluster.KMeans(n_clusters=4, n_init=1, random_state=0)),
        add("mini-batch k-means", cluster.MiniBatchKMeans(n_clusters=4, n_init=1, random_state=0)),
        add("gaussian mixture", mixture.GaussianMixture(3, random_state=0)),
        add("PCA", decomposition.PCA(3)),
        add("truncated SVD", decomposition.TruncatedSVD(3)),
        add("incremental PCA", decomposition.IncrementalPCA(3)),
        add("standard scaler", preprocessing.StandardScaler()),
        add("standard scaler, i64", preprocessing.StandardScaler(), X_integers, None, Int64TensorType),
        add("standard scaler, f64", preprocessing.StandardScaler(), X_wide, None, DoubleTensorType),
        add("min-max scaler", preprocessing.MinMaxScaler()),
        add("max-abs scaler", preprocessing.MaxAbsScaler()),
        add("robust scaler", preprocessing.RobustScaler()),
        add("binarizer", preprocessing.Binarizer(threshold=0.2)),
        add("normalizer, l1", preprocessing.Normalizer("l1")),
        add("normalizer, l2", preprocessing.Normalizer("l2")),
        add("normalizer, max", preprocessing.Normalizer("max")),
        add("polynomial features", preprocessing.PolynomialFeatures(2)),
        add("k bins", preprocessing.KBinsDiscretizer(4, encode="onehot-dense")),
        add("power transformer", preprocessing.PowerTransformer()),
        add("one-hot, i64", preprocessing.OneHotEncoder(sparse_output=False), X_integers, None, Int64TensorType),
        add("ordinal, i64", preprocessing.OrdinalEncoder(), X_integers, None, Int64TensorType),
        add("simple imputer", impute.SimpleImputer(), X_missing),
        add("k-nearest imputer", impute.KNNImputer(n_neighbors=2), X_missing),
        add("select best", feature_selection.SelectKBest(k=3), X, y_three),
        add("variance threshold", feature_selection.VarianceThreshold(0.5)),
        add("pipeline: imputer, scaler, forest", pipeline.make_pipeline(impute.SimpleImputer(), preprocessing.StandardScaler(), forest(10, max_depth=6)), X_missing, y_three, zipmap=True),
        add("pipeline: imputer, scaler, logistic", pipeline.make_pipeline(impute.SimpleImputer(strategy="median"), preprocessing.StandardScaler(), linear_model.LogisticRegression()), X_missing, y_names, zipmap=True),
        add("pipeline: columns, one-hot", pipeline.make_pipeline(compose.ColumnTransformer([("c", preprocessing.OneHotEncoder(handle_unknown="ignore"), [0, 1]), ("n", preprocessing.StandardScaler(), [2, 3, 4, 5])]), ensemble.GradientBoostingClassifier(n_estimators=10)), X_category, y_two, zipmap=True),
        add("pipeline: PCA, SVC", pipeline.make_pipeline(preprocessing.StandardScaler(), decomposition.PCA(4), svm.SVC()), X, y_three),
        add("multi-output", multioutput.MultiOutputRegressor(linear_model.Ridge()), X, y_many),
        add("regressor chain of features", pipeline.make_pipeline(preprocessing.PolynomialFeatures(2), linear_model.Ridge()), X, y_real),
    ]
    for kernel in ("linear", "poly", "rbf", "sigmoid"):
        models += [
            classifier(f"SVC, {kernel}", svm.SVC(kernel=kernel)),
            classifier(f"SVC, {kernel}, two classes", svm.SVC(kernel=kernel), y_two),
            classifier(f"SVC, {kernel}, names", svm.SVC(kernel=kernel), y_names),
            classifier(f"SVC, {kernel}, probabilities", svm.SVC(kernel=kernel, probability=True, random_state=0)),
            classifier(f"SVC, {kernel}, two probabilities", svm.SVC(kernel=kernel, probability=True, random_state=0), y_two),
            add(f"SVR, {kernel}", svm.SVR(kernel=kernel), X, y_real),
            add(f"NuSVR, {kernel}", svm.NuSVR(kernel=kernel), X, y_real),
        ]
    return models


def boosted_models():
    import lightgbm
    import xgboost

    def add(name, convert, estimator, labels, data=X, **more):
        def export():
            estimator.fit(data, labels, **more.get("fit", {}))
            return convert(estimator, initial_types=[("x", MlFloat([None, data.shape[1]]))], **more.get("to", {}))
        return name, export, data

    xgb, lgb = onnxmltools.convert_xgboost, onnxmltools.convert_lightgbm
    small = {"n_estimators": 20, "max_depth": 5}
    plain_lgb = {"to": {"zipmap": False}}
    return [
        add("xgboost, real", xgb, xgboost.XGBRegressor(**small), y_real),
        add("xgboost, real, missing", xgb, xgboost.XGBRegressor(**small), y_real, X_missing),
        add("xgboost, two classes", xgb, xgboost.XGBClassifier(**small), y_two),
        add("xgboost, two classes, missing", xgb, xgboost.XGBClassifier(**small), y_two, X_missing),
        add("xgboost, three classes", xgb, xgboost.XGBClassifier(**small), y_three),
        add("xgboost, random forest", xgb, xgboost.XGBRFClassifier(**small), y_two),
        add("xgboost, poisson", xgb, xgboost.XGBRegressor(objective="count:poisson", **small), X_positive[:, 0]),
        add("lightgbm, real", lgb, lightgbm.LGBMRegressor(verbose=-1, **small), y_real),
        add("lightgbm, real, missing", lgb, lightgbm.LGBMRegressor(verbose=-1, **small), y_real, X_missing),
        add("lightgbm, two classes", lgb, lightgbm.LGBMClassifier(verbose=-1, **small), y_two, **plain_lgb),
        add("lightgbm, two classes, ZipMap", lgb, lightgbm.LGBMClassifier(verbose=-1, **small), y_two),
        add("lightgbm, three classes", lgb, lightgbm.LGBMClassifier(verbose=-1, **small), y_three, **plain_lgb),
        add("lightgbm, odd labels", lgb, lightgbm.LGBMClassifier(verbose=-1, **small), y_odd, **plain_lgb),
        add("lightgbm, categories", lgb, lightgbm.LGBMRegressor(verbose=-1, **small), y_real, X_category, fit={"categorical_feature": [0, 1]}),
        add("lightgbm, dart", lgb, lightgbm.LGBMRegressor(boosting_type="dart", verbose=-1, **small), y_real),
        add("lightgbm, poisson", lgb, lightgbm.LGBMRegressor(objective="poisson", verbose=-1, **small), X_positive[:, 0]),
    ]
